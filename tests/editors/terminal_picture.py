"""Pictures of terminals: a screen with its escape sequences as SVG."""

import dataclasses
import html
import re

kCellWidth, kCellHeight = 8.4, 18
kNamed = ("#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5")  # colours 30 to 37
kBackground, kForeground = "#14161b", "#e0e2ea"  # Neovim's own dark colours


def plain(screen):
    return re.sub(r"\x1b\[[\d;:]*m", "", screen)


@dataclasses.dataclass(frozen=True)
class Style:
    colour: str | None = None
    background: str | None = None
    bold: bool = False
    italic: bool = False
    swapped: bool = False  # colour and background

    def drawn(self):
        """(colour, background), None for the terminal's own background."""
        if self.swapped:
            return self.background or kBackground, self.colour or kForeground
        return self.colour or kForeground, self.background


def style_after(style, codes):
    """The style behind one SGR sequence."""
    numbers = [int(code or 0) for code in re.split("[;:]", codes)]
    while numbers:
        code = numbers.pop(0)
        change = {}
        if code == 0:
            style = Style()
        elif code in (1, 22):
            change = {"bold": code == 1}
        elif code in (3, 23):
            change = {"italic": code == 3}
        elif code in (7, 27):
            change = {"swapped": code == 7}
        elif code in (38, 48) and numbers[:1] == [2]:
            change = {"colour" if code == 38 else "background": "#%02x%02x%02x" % tuple(numbers[1:4])}
            numbers = numbers[4:]
        elif 30 <= code <= 37:
            change = {"colour": kNamed[code - 30]}
        elif code in (39, 49):
            change = {"colour" if code == 39 else "background": None}
        style = dataclasses.replace(style, **change)
    return style


def runs(line, style):
    """(column, text, style) of each stretch of `line`, and the style behind it."""
    found, column = [], 0
    for part in re.split(r"(\x1b\[[\d;:]*m)", line):
        if match := re.fullmatch(r"\x1b\[([\d;:]*)m", part):
            style = style_after(style, match[1])
        elif part:
            found.append((column, part, style))
            column += len(part)
    return found, style


def elements(screen, columns, rows):
    width, height = columns * kCellWidth + 20, rows * kCellHeight + 20
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
           f'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14">')
    yield f'<rect width="{width:g}" height="{height:g}" rx="6" fill="{kBackground}"/>'
    style = Style()
    for row, line in enumerate(screen.splitlines()[:rows]):
        found, style = runs(line, style)
        for column, text, style_here in found:
            x, y, length = 10 + column * kCellWidth, 10 + row * kCellHeight, len(text) * kCellWidth
            colour, background = style_here.drawn()
            if background and background != kBackground:
                yield f'<rect x="{x:g}" y="{y:g}" width="{length:g}" height="{kCellHeight}" fill="{background}"/>'
            if text.strip():
                weight = ' font-weight="bold"' * style_here.bold + ' font-style="italic"' * style_here.italic
                yield (f'<text x="{x:g}" y="{y + 14:g}" textLength="{length:g}" xml:space="preserve" '
                       f'fill="{colour}"{weight}>{html.escape(text)}</text>')
    yield "</svg>"


def svg(screen, columns, rows):
    """A picture of `screen`, which is what `tmux capture-pane -e -p` prints."""
    return "\n".join(elements(screen, columns, rows))

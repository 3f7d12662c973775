#!/usr/bin/env python3
"""Draws docs/neovim.svg: ghost text in a real Neovim, in a terminal, with the README's lines of configuration.

    picture.py EFIMD NEOVIM > docs/neovim.svg        (needs tmux, which is the terminal)
"""

import html
import pathlib
import re
import subprocess
import sys
import time

kRoot = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(kRoot / "tests" / "support"), str(kRoot / "tests" / "editors")]
from neovim_test import readme_configuration  # noqa: E402
from private_daemon import private_daemon  # noqa: E402

kColumns, kRows = 72, 12
kCellWidth, kCellHeight = 8.4, 18
kBackground, kForeground = "#14161b", "#e0e2ea"  # Neovim's own dark colours
kPatienceS = 30

kCode = '''class Settings:
    def __init__(self, path):
        self.path = path
        self.values = {}
        self.listeners = []

    def get(self, name, default=None):
        return self.values.get(name, default)

'''
kTyped = "    def remove"


def capture(efimd, neovim):
    """The screen, with its escape sequences, once there is ghost text on it."""
    with private_daemon(efimd, "[completion]\nconfidence = 0\n") as environment:
        home = pathlib.Path(environment["HOME"])
        (home / "init.lua").write_text(readme_configuration() + """
            vim.o.termguicolors = true; vim.o.laststatus = 0; vim.o.ruler = false; vim.o.showmode = false
            vim.o.fillchars = 'eob: '
            vim.api.nvim_create_autocmd('LspAttach', { callback = function() vim.o.number = true end })
        """, encoding="utf-8")
        (home / "settings.py").write_text(kCode, encoding="utf-8")
        tmux = ["tmux", "-S", str(home / "tmux"), "-f", "/dev/null"]

        def run(*arguments):
            return subprocess.run([*tmux, *arguments], env=environment, check=True,
                                  capture_output=True, text=True).stdout

        def screen_when(holds):
            deadline = time.monotonic() + kPatienceS
            while not holds(screen := run("capture-pane", "-e", "-p")):
                if time.monotonic() > deadline:
                    raise SystemExit(f"this is all that came in {kPatienceS} s:\n{screen}")
                time.sleep(0.05)
            return screen

        run("new-session", "-d", "-x", str(kColumns), "-y", str(kRows),
            f"COLORTERM=truecolor {neovim} -u {home}/init.lua {home}/settings.py")
        try:
            run("set-option", "-s", "escape-time", "0")
            screen_when(lambda screen: "1 class" in plain(screen))  # numbers: the client is there
            run("send-keys", "G", "o")
            run("send-keys", "-l", kTyped)
            # Ghost text is the one thing behind what was typed.
            return screen_when(lambda screen: re.search(kTyped + r"\S", plain(screen)))
        finally:
            run("kill-server")


def plain(screen):
    return re.sub(r"\x1b\[[\d;:]*m", "", screen)


def style_after(style, codes):
    """(colour, background, bold, italic) behind one SGR sequence."""
    colour, background, bold, italic = style
    numbers = [int(code or 0) for code in re.split("[;:]", codes)]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            colour, background, bold, italic = None, None, False, False
        elif code in (1, 22):
            bold = code == 1
        elif code in (3, 23):
            italic = code == 3
        elif code in (38, 48) and numbers[:1] == [2]:
            found = "#%02x%02x%02x" % tuple(numbers[1:4])
            numbers = numbers[4:]
            colour, background = (found, background) if code == 38 else (colour, found)
        elif code == 39:
            colour = None
        elif code == 49:
            background = None
    return colour, background, bold, italic


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


def svg(screen):
    width, height = kColumns * kCellWidth + 20, kRows * kCellHeight + 20
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
           f'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14">')
    yield f'<rect width="{width:g}" height="{height:g}" rx="6" fill="{kBackground}"/>'
    style = (None, None, False, False)
    for row, line in enumerate(screen.splitlines()[:kRows]):
        found, style = runs(line, style)
        for column, text, (colour, background, bold, italic) in found:
            x, y, length = 10 + column * kCellWidth, 10 + row * kCellHeight, len(text) * kCellWidth
            if background and background != kBackground:
                yield f'<rect x="{x:g}" y="{y:g}" width="{length:g}" height="{kCellHeight}" fill="{background}"/>'
            if text.strip():
                weight = ' font-weight="bold"' * bold + ' font-style="italic"' * italic
                yield (f'<text x="{x:g}" y="{y + 14:g}" textLength="{length:g}" xml:space="preserve" '
                       f'fill="{colour or kForeground}"{weight}>{html.escape(text)}</text>')
    yield "</svg>"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: picture.py EFIMD NEOVIM > docs/neovim.svg")
    print("\n".join(svg(capture(*(str(pathlib.Path(path).resolve()) for path in sys.argv[1:])))))

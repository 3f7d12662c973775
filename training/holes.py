"""Holes in a text that look like editing: what a model is to fill in between `before` and `after`.

EFIM's increment is the first part of what is filled in: efimd cuts at the beginning of a line (A-2), and what was typed from there
stands behind <fim_middle>. So a hole that begins at a line's beginning, some lines above, holds an increment of any length, and the
model learns to go on at each of its tokens.
"""
import dataclasses
import random
import re

TYPED_LINES_MAX = 12  # of an increment; efimd begins a new anchor after about 64 tokens
WORD_END = re.compile(r"\w+|[^\w\s]")


@dataclasses.dataclass(frozen=True)
class Hole:
    begin: int
    end: int


def line_bounds(text: str, at: int):
    """Begin and end of the line that character `at` stands in, without its newline."""
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def line_rest(text: str, chance: random.Random) -> Hole:
    """From inside a line, after its indentation, to its end."""
    begin, end = line_bounds(text, chance.randrange(len(text)))
    indent = len(text[begin:end]) - len(text[begin:end].lstrip())
    return Hole(chance.randint(begin + indent, end), end)


def lines(text: str, chance: random.Random) -> Hole:
    """One to six whole lines, the last without its newline, as a suggestion ends."""
    begin, end = line_bounds(text, chance.randrange(len(text)))
    for _ in range(chance.randrange(6)):
        if end + 1 < len(text):
            end = line_bounds(text, end + 1)[1]
    return Hole(begin, end)


def block(text: str, chance: random.Random) -> Hole:
    """The lines below one that are indented deeper than it, from the end of that line; a line's rest if there are none."""
    begin, end = line_bounds(text, chance.randrange(len(text)))
    depth = indentation(text[begin:end])
    last = end
    while last + 1 < len(text):
        next_begin, next_end = line_bounds(text, last + 1)
        line = text[next_begin:next_end]
        if line.strip() and indentation(line) <= depth:
            break
        last = next_end
    return Hole(end, last) if last > end else line_rest(text, chance)


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def span(text: str, chance: random.Random) -> Hole:
    begin, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
    return Hole(begin, min(end, begin + len(text) // 3))


def lines_above(text: str, begin: int, chance: random.Random) -> int:
    """A line's beginning at or above `begin`: often the same line's, seldom many lines above."""
    for _ in range(min(TYPED_LINES_MAX, int(chance.expovariate(0.5)))):
        begin = text.rfind("\n", 0, max(0, begin - 1)) + 1
    return begin


def through_newline(text: str, end: int) -> int:
    return end + 1 if text[end:end + 1] == "\n" else end


def typed(text: str, chance: random.Random) -> Hole:
    """Whole lines that were typed one after the other, with the newline of the last: there `after` begins (A-3). What follows a
    finished line's last character is that newline and then nothing: so a model learns to be silent."""
    begin, end = line_bounds(text, chance.randrange(len(text)))
    return Hole(lines_above(text, begin, chance), through_newline(text, end))


def edit(text: str, chance: random.Random) -> Hole:
    """From a line's beginning to a word's end inside of the line: old code follows at once, so `after` begins there (A-3)."""
    begin, end = line_bounds(text, chance.randrange(len(text)))
    ends = [match.end() for match in WORD_END.finditer(text, begin, end)][:-1]
    return Hole(lines_above(text, begin, chance), chance.choice(ends)) if ends else typed(text, chance)


KINDS = {"typed": typed, "edit": edit, "rest": line_rest, "lines": lines, "block": block, "span": span}
# Without an increment, holes that end at a line's end may hold its newline or leave it to `after`.
EITHER_WAY = ("rest", "lines", "block", "span")


def draw(text: str, shares: dict, newline_share: float, chance: random.Random) -> Hole:
    kind = chance.choices(list(shares), list(shares.values()))[0]
    hole = KINDS[kind](text, chance)
    with_newline = kind in EITHER_WAY and chance.random() < newline_share
    return Hole(hole.begin, through_newline(text, hole.end)) if with_newline else hole

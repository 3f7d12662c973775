"""Cursors of people who type, in code that a model has never seen.

A cursor stands after an increment: up to three lines typed whole, and the cursor's own up to the cursor. The right answer is the
file's own text there, the rest of the line. `random` cursors stand anywhere in a line, mostly inside a word; `line` cursors at a
line's start, so that no word is broken.
"""
import dataclasses
import random

from training.errors import TrainingError

BEFORE_CHARACTERS, AFTER_CHARACTERS = 500, 160  # about 250 tokens, which every model's window holds
LINES_TYPED_MAX = 3
ATTEMPTS = 200  # for each cursor, at files that have no fitting place


@dataclasses.dataclass(frozen=True)
class Cursor:
    path: str
    language: str
    head: str  # the file before the window, for baselines and parsers
    before: str
    increment: str
    rest: str  # of the cursor's line, without blanks at its end; never empty
    after: str  # the window's, from the next line on
    tail: str  # the file after the window

    @property
    def typed_line(self) -> str:
        return (self.before + self.increment).rsplit("\n", 1)[-1]

    def with_text(self, text: str) -> str:
        """The file with `text` where the rest of the line was."""
        return self.head + self.before + self.increment + text + "\n" + self.after + self.tail


def at(record: dict, place: int, lines_typed: int) -> Cursor:
    text = record["text"]
    end = text.find("\n", place)
    begin = line_start(text, place)
    for _ in range(lines_typed):
        begin = line_start(text, begin - 1) if begin > 0 else 0
    window = line_start(text, max(0, begin - BEFORE_CHARACTERS))
    after_end = text.find("\n", end + AFTER_CHARACTERS)
    after_end = len(text) if after_end < 0 else after_end + 1
    return Cursor(record["path"], record["language"], text[:window], text[window:begin], text[begin:place],
                  text[place:end].rstrip(), text[end + 1:after_end], text[after_end:])


def line_start(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def draw(records: list, kind: str, count: int, seed: int) -> list:
    """`count` cursors, the same for the same seed; every language gets about as many as any other."""
    chance = random.Random(f"{seed}/{kind}")
    by_language = {}
    for record in records:
        by_language.setdefault(record["language"], []).append(record)
    languages = sorted(by_language)
    out = []
    for attempt in range(count * ATTEMPTS):
        if len(out) == count:
            return out
        record = chance.choice(by_language[languages[attempt % len(languages)]]) if languages else None
        if record is None:
            break
        place = chance.randrange(len(record["text"]))
        if kind == "line":
            place = line_start(record["text"], place)
        cursor = at(record, place, chance.randint(0, LINES_TYPED_MAX))
        if cursor.rest.strip():
            out.append(cursor)
    raise TrainingError(f"the test files have too little code for {count} cursors of the kind '{kind}'")

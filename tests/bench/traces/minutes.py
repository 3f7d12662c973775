#!/usr/bin/env python3
"""Writes an editing trace for `efimd-bench replay`: a while in each file, then back to each of them in turn.

usage: minutes.py FILE... [--first EVENTS] [--above EVENTS] [--back EVENTS] [--seed N] >trace.jsonl

Lines are taken out of each file's middle and typed again: two thirds of a line by keys, with some typing errors, its
rest at once as an accepted suggestion comes, then Enter. The events of the first visit are of the kind "first-visit".
Those of the second are told apart, and three jumps to other lines of the file follow. With --above, a line comes to
the file's top after so many events of the first visit, as an import does; the visit's rest is of the kind "line-above".
"""
import argparse
import json
import pathlib
import random

kLines = 24  # taken out of a file: more than both visits type
kTypos = 0.03
kJumps = 3


class File:
    """One document of the trace, as it is after the events so far."""

    def __init__(self, path, rng):
        self.path, self.rng = path, rng
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
        if len(lines) < 3 * kLines:
            raise SystemExit(f"minutes.py: {path} has fewer than {3 * kLines} lines")
        at = len(lines) // 2
        self.cursor = sum(map(len, lines[:at]))
        self.text = "".join(lines[:at] + lines[at + kLines:])
        self.keys = self.keys_of("".join(lines[at:at + kLines]))

    def opened(self):
        return {"op": "open", "path": self.path, "text": self.text}

    def keys_of(self, text):
        """(kind, text to insert, characters to remove before the cursor), one for each key."""
        for line in text.splitlines():
            indent = len(line) - len(line.lstrip())
            by_hand = max(indent, len(line) * 2 // 3)
            for at in range(indent, by_hand):
                if self.rng.random() < kTypos:
                    yield "typo", "x", 0
                    yield "fix", "", 1
                # The editor indents.
                yield "type", line[0 if at == indent else at:at + 1], 0
            if line[by_hand:]:
                yield "accept", line[by_hand if by_hand > indent else 0:], 0
            yield "newline", "\n", 0

    def typed(self, events, kind=None):
        for _, (own, text, removed) in zip(range(events), self.keys):
            at = self.cursor - removed
            self.text = self.text[:at] + text + self.text[self.cursor:]
            self.cursor = at + len(text)
            yield {"op": "edit", "path": self.path, "pos": at, "del": removed, "ins": text, "cursor": self.cursor,
                   "kind": kind or own, "ask": True}

    def line_above(self):
        """A line at the file's top; the cursor stays where it is in the text, and is asked for there."""
        line = "# note\n" if self.path.endswith(".py") else "// note\n"
        self.text = line + self.text
        self.cursor += len(line)
        yield {"op": "edit", "path": self.path, "pos": 0, "del": 0, "ins": line, "cursor": self.cursor, "kind": "line-above", "ask": True}

    def jumps(self):
        ends = [at for at, character in enumerate(self.text) if character == "\n"]
        for at in self.rng.sample(ends, kJumps):
            yield {"op": "move", "path": self.path, "cursor": at, "kind": "jump", "ask": True}


def events_of(options):
    rng = random.Random(options.seed)
    files = [File(path, rng) for path in options.files]
    for file in files:
        yield file.opened()
        above = options.first if options.above is None else options.above
        yield from file.typed(above, "first-visit")
        if above < options.first:
            yield from file.line_above()
            yield from file.typed(options.first - above, "line-above")
    for file in files:
        yield {"op": "move", "path": file.path, "cursor": file.cursor, "kind": "switch", "ask": True}
        yield from file.typed(options.back)
        yield from file.jumps()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--first", type=int, default=180, metavar="EVENTS", help="of the first visit: a minute with pauses of 300 ms")
    parser.add_argument("--above", type=int, metavar="EVENTS", help="of the first visit, after which a line comes to the top (none)")
    parser.add_argument("--back", type=int, default=45, metavar="EVENTS", help="of the second visit")
    parser.add_argument("--seed", type=int, default=7)
    for event in events_of(parser.parse_args()):
        print(json.dumps(event))


if __name__ == "__main__":
    main()

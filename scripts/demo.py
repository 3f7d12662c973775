#!/usr/bin/env python3
"""Types two pieces of code through efimd as an editor does, and shows what it suggests and what each answer cost.

    demo.py EFIMD

Every keystroke is sent and answered. A suggestion is accepted if it is the text that was going to be typed. The daemon is this demo's
own: it starts with it, ends with it, and knows no file of the user's.
"""

import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

kRoot = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(kRoot / "tests" / "support"))
from lsp_client import LspClient, LspError, offset_of, position_of  # noqa: E402
from private_daemon import private_daemon  # noqa: E402

kLoadingS = 60
kAcceptMin = 4  # characters; fewer are sooner typed than looked at
kShownLines, kShownColumns = 3, 96  # of a suggestion
kTty = sys.stdout.isatty()
kKeystrokeS = 0.02 if kTty else 0  # so that the eye can follow


def takes_styles(environment, tty):
    """Whether who looks sees text in styles: not in a file, a plain terminal, or against $NO_COLOR (no-color.org)."""
    return tty and environment.get("TERM", "dumb") != "dumb" and not environment.get("NO_COLOR")


kStyled = takes_styles(os.environ, kTty)


def styled(code, text):
    return f"\033[{code}m{text}\033[0m" if kStyled and text else text


def ghost(text):
    return styled("2;3", text) if kStyled else f"«{text}»" if text else ""


class Typist:
    """Writes `wanted` into a document between `before` and `after`, a keystroke at a time."""

    def __init__(self, editor, uri, language, before, wanted, after):
        self.editor, self.uri = editor, uri
        self.text, self.cursor, self.version = before + after, len(before), 1
        self.wanted = wanted
        self.receipts, self.accepted = [], 0
        editor.notify("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": language, "version": 1, "text": self.text}})

    def insert(self, piece):
        here = position_of(self.text, self.cursor)
        self.version += 1
        self.editor.notify("textDocument/didChange", {
            "textDocument": {"uri": self.uri, "version": self.version},
            "contentChanges": [{"range": {"start": here, "end": here}, "text": piece}]})
        self.text = self.text[:self.cursor] + piece + self.text[self.cursor:]
        self.cursor += len(piece)
        self.wanted = self.wanted[len(piece):]

    def suggestion(self):
        """The ghost text at the cursor, and its receipt."""
        items, receipt = self.editor.complete(self.uri, position_of(self.text, self.cursor))
        if not items:
            return "", receipt
        begin = offset_of(self.text, items[0]["range"]["start"])
        return items[0]["insertText"][self.cursor - begin:], receipt

    def wait_for_model(self):
        deadline = time.monotonic() + kLoadingS
        while "loading" in self.suggestion()[1].get("reason", ""):
            if time.monotonic() > deadline:
                raise LspError(f"the model was not loaded in {kLoadingS} s")
            time.sleep(0.05)

    def run(self):
        while self.wanted:
            self.insert(self.wanted[0])
            offered, receipt = self.suggestion()
            self.receipts.append(receipt)
            time.sleep(kKeystrokeS)
            if not self.looks_up():
                continue
            self.show(offered, receipt)
            taken = self.worth_taking(offered)
            if taken:
                self.insert(taken)
                self.accepted += len(taken)
                print(" " * 7 + styled("32", f"accepted: {taken.strip()!r}"))

    def looks_up(self):
        """Whether a person would look here: after a word or an opening bracket, or at the start of a
        line."""
        line = self.text[self.text.rfind("\n", 0, self.cursor) + 1:self.cursor]
        if not line.strip():
            return bool(self.wanted[:1].strip())
        inside_word = re.match(r"\w\w", line[-1] + self.wanted[:1])
        return bool(re.match(r"[\w(]", line[-1])) and not inside_word

    def worth_taking(self, offered):
        """The whole words at the start of `offered` that were going to be typed anyway."""
        taken = ""
        for word in re.findall(r"\s*(?:\w+|[^\w\s])", offered):
            if not self.wanted.startswith(taken + word):
                break
            taken += word
        cuts_word = re.match(r"\w\w", taken[-1:] + self.wanted[len(taken):][:1])
        return taken if len(taken.strip()) >= kAcceptMin and not cuts_word else ""

    def show(self, offered, receipt):
        start = self.text.rfind("\n", 0, self.cursor) + 1
        first, *more = (cropped(line) for line in offered.split("\n"))
        if len(more) >= kShownLines:
            more[kShownLines - 1:] = ["..."]
        number = self.text.count("\n", 0, self.cursor) + 1
        print(f"{number:>4} | {self.text[start:self.cursor]}{ghost(first)}")
        for line in more:
            print(f"     | {ghost(line)}")
        print(" " * 7 + styled("2", receipt_line(receipt)))


def cropped(line):
    return line if len(line) <= kShownColumns else line[:kShownColumns] + "..."


def receipt_line(receipt):
    line = (f"{receipt['event']}: {receipt['evaluatedTokens']} of {receipt['promptTokens']} tokens "
            f"evaluated, {receipt['totalMs']:.0f} ms")
    return f"{line}; silent: {receipt['reason']}" if receipt.get("reason") else line


def cut_out(path, begin, end):
    """(before, wanted, after) of a file whose lines from the one with `begin` to the one with `end` are to be typed."""
    text = (kRoot / path).read_text(encoding="utf-8")
    first = text.rindex("\n", 0, text.index(begin)) + 1
    last = text.index("\n", text.index(end, first))
    indent = len(text[first:]) - len(text[first:].lstrip(" "))
    return text[:first + indent], text[first + indent:last], text[last:]


kPython = ('''class Settings:
    def __init__(self, path):
        self.path = path
        self.name = None
        self.values = {}
        self.listeners = []

    def get(self, name, default=None):
        ''', '''return self.values.get(name, default)

    def set(self, name, value):
        self.values[name] = value
        for listener in self.listeners:
            listener(name, value)

    def remove(self, name):
        if name in self.values:
            del self.values[name]

    def add_listener(self, listener):
        self.listeners.append(listener)''', '''

    def __len__(self):
        return len(self.values)
''')


def demo(efimd):
    with private_daemon(efimd) as environment:
        editor = LspClient([efimd, "lsp"], environment, {"receipts": True})
        receipts, accepted, typed = [], 0, 0
        for title, language, parts in [
                ("base/utf8.cpp", "cpp", cut_out("base/utf8.cpp", "if (lead < 0x80) return 1;", "return 0;")),
                ("settings.py", "python", kPython)]:
            print(f"\n{styled('1', title)}: {len(parts[1])} characters to write\n")
            typist = Typist(editor, f"file:///demo/{title}", language, *parts)
            typist.wait_for_model()
            typist.run()
            receipts += typist.receipts
            accepted += typist.accepted
            typed += len(parts[1])
        editor.close()

        print(f"\n{len(receipts)} keystrokes, {accepted} of {typed} characters accepted instead of typed; "
              f"for each keystroke {statistics.mean(r['evaluatedTokens'] for r in receipts):.1f} tokens evaluated "
              f"of {statistics.mean(r['promptTokens'] for r in receipts):.0f}, answered within "
              f"{statistics.median(r['totalMs'] for r in receipts):.0f} ms (median)")
        print(f"\n{styled('1', 'efimd status')}\n", flush=True)
        subprocess.run([efimd, "status"], env=environment, check=True)


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: demo.py EFIMD")
    # Ended from outside, the daemon and its folders still go away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        demo(str(pathlib.Path(sys.argv[1]).resolve()))
    except KeyboardInterrupt:
        return 130
    except (LspError, OSError, subprocess.CalledProcessError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

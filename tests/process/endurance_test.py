"""Thousands of keystrokes in one session: each request gets exactly one answer, and memory stays flat."""

import os
import pathlib
import random
import unittest

from user import UserTest, kRoot

kEvents = 5000
kSources = ["daemon/prompt/planner.cpp", "engine/kv/kv_pool.cpp", "lsp/protocol.cpp", "scripts/test_summary.py",
            "daemon/text/document.cpp", "daemon/completion/answer/worker.cpp"]
kLines = 120  # of each, at first: together they have twice the tokens that the memory for KV holds
kWarmUp = 2500  # by then the memory for KV is full and every file was visited
kGrowthMax = 4 << 20


def resident_bytes(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Typist:
    """Types each file's own lines again in the middle of it, goes elsewhere, comes back, takes back."""

    def __init__(self, editor, seed):
        self.editor, self.random = editor, random.Random(seed)
        self.lines = {f"file:///project/{source}": (kRoot / source).read_text().split("\n")[:kLines] for source in kSources}
        self.versions = {}
        for uri, lines in self.lines.items():
            editor.open(uri, "\n".join(lines))
            self.versions[uri] = 1
        self.go()

    def go(self):
        self.uri = self.random.choice(list(self.lines))
        lines = self.lines[self.uri]
        self.line = self.random.randrange(1, len(lines))
        self.begin(self.random.choice(lines))

    def begin(self, text):
        """A new line before the current one, on which `text` is to be typed."""
        self.text, self.column = text, 0
        self.edit((self.line, 0), (self.line, 0), "\n")
        self.lines[self.uri].insert(self.line, "")

    def edit(self, start, end, text):
        self.versions[self.uri] += 1
        self.editor.change(self.uri, self.versions[self.uri], (start, end, text))

    def step(self):
        """One keystroke; the id of the request after it."""
        lines = self.lines[self.uri]
        if self.column < len(self.text):
            self.edit((self.line, self.column), (self.line, self.column), self.text[self.column])
            self.column += 1
            lines[self.line] = self.text[: self.column]
            if self.random.random() < 0.05:
                self.column -= 1
                self.edit((self.line, self.column), (self.line, self.column + 1), "")
                lines[self.line] = self.text[: self.column]
        elif len(lines) > 400 or self.random.random() < 0.3:
            self.edit((self.line, 0), (self.line + 1, 0), "")  # takes the line back
            del lines[self.line]
            self.go()
        else:
            self.line += 1
            self.begin(self.random.choice(lines))
        return self.editor.start_completion(self.uri, self.line, self.column)


class EnduranceTest(UserTest):
    config = "[cache]\nmemory_mb = 16\ndisk_mb = 64\n"

    def test_five_thousand_keystrokes(self):
        editor = self.ready_editor(maxTokens=2)
        editor.complete_when_loaded("file:///project/fibonacci.py", 3, 30)
        pid = self.daemon_pid()
        typist = Typist(editor, seed=1)
        asked_before, warm = editor.last_id, 0
        while editor.last_id - asked_before < kEvents:
            # Now and then somebody types faster than answers come.
            burst = [typist.step() for _ in range(3 if typist.random.random() < 0.02 else 1)]
            for request in burst:
                self.assertNotIn("error", editor.answer(request))
            if warm == 0 and editor.last_id - asked_before >= kWarmUp:
                warm = resident_bytes(pid)
                memory = self.status()["memory"]["device"]
                self.assertGreater(memory["usedBytes"], 0.9 * memory["budgetBytes"], "the memory for KV is not full")
        grown = resident_bytes(pid) - warm
        self.assertEqual(self.daemon_pid(), pid)
        self.assertEqual(editor.answers, {}, "a request was answered twice")
        print(f"{kEvents} keystrokes: resident {warm >> 20} MiB after {kWarmUp}, {grown / 2**20:+.1f} MiB by the end")
        self.assertLess(grown, kGrowthMax)


if __name__ == "__main__":
    unittest.main()

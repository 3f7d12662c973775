"""A user whose KV is kept: one file of real code, editors that open it and ask, and what of it is on the disk."""

import json

from user import UserTest, kRoot, poll

kTokens = 3000
kRestartsMax = 10  # until one was not interrupted by what else the machine does


def source_of(tokens):
    """Real code of about so many tokens."""
    text = "".join(file.read_text() for file in sorted((kRoot / "tests" / "process").glob("*_test.py")))
    return text[:tokens * 3]


class CacheUser(UserTest):
    config = "[completion]\nmax_tokens = 8\n"

    def setUp(self):
        super().setUp()
        self.text = source_of(kTokens)
        self.lines = self.text.split("\n")
        # In the middle, at the end of a line that has something on it.
        self.line = next(number for number in range(len(self.lines) // 2, len(self.lines))
                         if self.lines[number].strip().endswith(")"))
        self.file = self.folder / "code.py"
        self.file.write_text(self.text)
        self.uri = self.file.as_uri()
        self.store = self.folder / "cache" / "kv"

    def type_in(self, uri=None, text=None, whole=True):
        """A fresh editor opens the file and asks, until the whole window is shown (unless not `whole`: once).

        How much the first answer shows depends on the machine's speed (A-10). The last one's receipt, with what was restored for
        all of them, the most that one of the whole prompt evaluated, and that one of less did; and what it suggested.
        """
        self.typed = (uri, text)
        editor = self.editor()
        editor.initialize(receipts=True)
        editor.open(uri or self.uri, self.text if text is None else text)
        place = (uri or self.uri, self.line, len(self.lines[self.line]))
        items, first = editor.complete_when_loaded(*place)
        answers = [(items, first)]

        def shows_all():
            if self.status()["plans"][0]["taken"].startswith("full"):
                return True
            answers.append(editor.complete(*place))
            return False

        if whole and first["promptTokens"] > 0:
            poll(shows_all, "the full view of the file")
        editor.leave()
        items, receipt = answers[-1]
        restored = sum(each["restoredTokens"] for _, each in answers)
        whole_prompt = receipt["promptTokens"]
        evaluated = max(each["evaluatedTokens"] for _, each in answers if each["promptTokens"] == whole_prompt)
        of_less = max((each["evaluatedTokens"] for _, each in answers if each["promptTokens"] != whole_prompt), default=0)
        return receipt | {"restoredTokens": restored, "evaluatedTokens": evaluated, "evaluatedOfLess": of_less}, [item["insertText"] for item in items]

    def stored(self, uri=None):
        """The tokens on disk of a file, by the daemon or by the store itself."""
        done = self.run_efimd("cache", "list", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return sum(file["tokensDisk"] for file in json.loads(done.stdout)["files"]
                   if file["uri"] == (uri or self.uri))

    def wait_until_stored(self, receipt):
        """Until five looks agree: pages of smaller windows count, too, and may be there first."""
        whole_pages = receipt["promptTokens"] // 32 * 32
        looks = []

        def all_written():
            looks.append(self.stored())
            return looks[-1] >= whole_pages and len(looks) > 5 and len(set(looks[-5:])) == 1

        poll(all_written, "the prompt's pages are on disk")

    def check_restored(self, cold, warm, not_written=0):
        """`not_written`: tokens of stages of the wide window that may not have reached the disk yet."""
        for part in ("view", "shown", "before", "after"):
            self.assertEqual(warm["window"][part], cold["window"][part], (warm, cold))
        # What was typed may be spelled in other tokens, if this answer or one before it healed some.
        kept = [receipt["promptTokens"] - receipt["window"]["typed"] for receipt in (warm, cold)]
        self.assertEqual(*kept, (warm, cold))
        whole_pages = cold["promptTokens"] // 32 * 32 - 32 - not_written
        for _ in range(kRestartsMax):  # a page of this model is evaluated in 3 ms, sooner than a busy machine's disk thread has its turn
            if warm["evaluatedOfLess"] == 0 or (warm["restoredTokens"] >= whole_pages and warm["evaluatedOfLess"] < 64):
                break
            self.run_efimd("stop")
            warm, _ = self.type_in(*self.typed)
        # Whole pages; how much of a long prompt that is, and in what time, tests/restart says.
        self.assertGreaterEqual(warm["restoredTokens"], whole_pages, warm)
        self.assertLessEqual(warm["evaluatedTokens"], 40, warm)
        # A busy machine's first answer shows little, of which no page may have been kept.
        self.assertLess(warm["evaluatedOfLess"], 64, warm)

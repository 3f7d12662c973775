"""The window of a prompt (A-4), with the real binary and the bundled model: idle time widens it, the disk keeps it, window.tokens bounds it."""

import unittest

import cache_user
from cache_user import CacheUser, poll


class WindowTest(CacheUser):
    def setUp(self):
        super().setUp()
        # Less than the bundled model's context has room for.
        self.text = cache_user.source_of(600)
        self.lines = self.text.split("\n")
        self.line = next(number for number in range(len(self.lines) // 2, len(self.lines))
                         if self.lines[number].strip().endswith(")"))
        self.file.write_text(self.text)

    def answers_until_full(self):
        """What the receipts of one editor say of the window, up to the first full view."""
        editor = self.editor()
        editor.initialize(receipts=True)
        editor.open(self.uri, self.text)
        place = (self.uri, self.line, len(self.lines[self.line]))
        receipts = [editor.complete_when_loaded(*place)[1]]

        def is_full():
            if receipts[-1].get("window", {}).get("view") == "full":
                return True
            receipts.append(editor.complete(*place)[1])
            return False

        poll(is_full, "the full window")
        receipts.append(editor.complete(*place)[1])  # a quick machine's first answer may have shown all of it
        editor.leave()
        return [receipt for receipt in receipts if receipt["promptTokens"] > 0]

    def test_idle_time_shows_the_whole_file_and_says_so(self):
        receipts = self.answers_until_full()
        shown = [receipt["window"]["shown"] for receipt in receipts]
        # On a fast machine the near view of the first answer has more tokens than the first window.
        self.assertEqual(shown[1:], sorted(shown[1:]))
        self.assertGreaterEqual(shown[-1], 0.95, receipts[-1])
        why = self.run_efimd("status", "--why").stdout
        self.assertIn("full, kept", why)
        self.assertRegex(why, r"(9[5-9]|100) % of the file")
        window = self.status()["model"]["windowTokens"]
        self.assertGreater(window, 800)

    def test_after_a_restart_the_first_answer_shows_the_whole_window(self):
        cold = self.answers_until_full()[-1]
        self.wait_until_stored(cold)
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        warm = self.answers_until_full()[-1]
        self.assertEqual(warm["promptTokens"], cold["promptTokens"])
        self.assertEqual(warm["window"], cold["window"])
        self.assertLessEqual(warm["evaluatedTokens"], 40, warm)

    def test_the_users_window_is_the_limit(self):
        (self.folder / "config.toml").write_text(self.config + "[window]\ntokens = 300\n")
        last = self.answers_until_full()[-1]
        self.assertEqual(self.status()["model"]["windowTokens"], 300)
        self.assertLessEqual(last["promptTokens"], 320)
        self.assertGreater(last["promptTokens"], 180)
        self.assertLess(last["window"]["shown"], 0.9)


if __name__ == "__main__":
    unittest.main()

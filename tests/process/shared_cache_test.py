"""KV is found by content: in another editor, another window, another workspace, and on a branch that comes back."""

import unittest

from cache_user import CacheUser, poll


class SharedCacheTest(CacheUser):
    def place(self):
        return self.line, len(self.lines[self.line])

    def opened(self, uri, text):
        """An editor of its own with the document open, and its first answer's receipt."""
        editor = self.editor()
        editor.initialize(receipts=True)
        editor.open(uri, text)
        _, receipt = editor.complete_when_loaded(uri, *self.place())
        return editor, receipt

    def until_full(self, editor, uri):
        """Asks until the whole window is shown; the last receipt."""
        last = {}

        def shows_all():
            last["receipt"] = editor.complete(uri, *self.place())[1]
            return self.status()["plans"][0]["taken"].startswith("full")

        poll(shows_all, "the full view of the file")
        return last["receipt"]

    def check_reused(self, receipt, whole):
        # Whole pages are shared: 95 % of a prompt of 640 tokens or more, and this model's hold fewer.
        self.assertGreaterEqual(receipt["reusedTokens"], receipt["promptTokens"] // 32 * 32 - 32, receipt)
        self.assertLessEqual(receipt["evaluatedTokens"], 40, receipt)
        # Not because it shows little.
        self.assertGreaterEqual(receipt["promptTokens"], 0.95 * whole["promptTokens"], receipt)

    def test_two_editors_with_the_same_file_share_its_kv(self):
        first, _ = self.opened(self.uri, self.text)
        whole = self.until_full(first, self.uri)
        second, receipt = self.opened(self.uri, self.text)
        self.check_reused(receipt, whole)
        # Each goes on with its own text, from what both have.
        line, character = self.place()
        for editor, text in ((first, " + 1"), (second, "; x")):
            editor.change(self.uri, 2, ((line, character), (line, character), text))
            typed = editor.complete(self.uri, line, character + len(text))[1]
            self.assertLessEqual(typed["evaluatedTokens"], 8, typed)
        first.leave()
        again = second.complete(self.uri, line, character + len("; x"))[1]
        self.check_reused(again, whole)
        second.leave()

    def test_two_workspaces_with_the_same_file_share_its_kv(self):
        editor, _ = self.opened(self.uri, self.text)
        whole = self.until_full(editor, self.uri)
        copy = (self.folder / "copy" / "code.py").as_uri()
        self.check_reused(self.opened(copy, self.text)[1], whole)

    def test_each_workspace_has_its_own_places_after_a_restart_and_a_moved_one_finds_its_kv(self):
        cold, _ = self.type_in()
        self.wait_until_stored(cold)
        self.run_efimd("stop")
        moved = (self.folder / "moved" / "code.py").as_uri()
        warm, _ = self.type_in(moved)
        self.check_restored(cold, warm)
        self.run_efimd("stop")
        warm, _ = self.type_in()
        self.check_restored(cold, warm)

    def test_a_branch_that_is_switched_and_switched_back_finds_its_kv(self):
        other_text = self.text.replace("self.run_efimd", "self.command").replace("def ", "async def ", 40)
        self.assertNotEqual(other_text, self.text)
        everything = ((0, 0), (len(self.lines), 0))
        editor, _ = self.opened(self.uri, self.text)
        whole = self.until_full(editor, self.uri)
        # The editor sees the file change on disk, as it does on `git switch`.
        editor.change(self.uri, 2, (*everything, other_text))
        other = self.until_full(editor, self.uri)
        editor.change(self.uri, 3, (*everything, self.text))
        back = editor.complete(self.uri, *self.place())[1]
        self.check_reused(back, whole)
        editor.change(self.uri, 4, (*everything, other_text))
        self.check_reused(editor.complete(self.uri, *self.place())[1], other)
        editor.leave()
        # Closed on the one branch, opened on the other, by the next daemon.
        counts = []

        def all_written():
            counts.append(self.stored())
            return counts[-1] > whole["promptTokens"] and len(counts) > 5 and len(set(counts[-5:])) == 1

        poll(all_written, "both branches' pages are on disk")
        self.run_efimd("stop")
        self.check_restored(whole, self.type_in()[0], not_written=96)
        self.run_efimd("stop")  # in memory is what both branches begin with
        self.check_restored(other, self.type_in(text=other_text)[0], not_written=96)


if __name__ == "__main__":
    unittest.main()

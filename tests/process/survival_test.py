"""The daemon's death in mid-session: the editor's next request is answered after replay, and nothing is shown as an error."""

import unittest

from user import UserTest, kCursor, kPatienceS, kText, kUri, poll

kOther = "file:///project/sum.py"
kOtherText = "def add_all(numbers):\n    total = 0\n    for number in numbers:\n        total += \n    return total\n"


class SurvivalTest(UserTest):
    def kill_and_wait(self):
        self.assertIsNotNone(self.kill_daemon())
        poll(lambda: self.run_efimd("status").returncode == 1, "the daemon's end")

    def test_the_next_request_is_answered(self):
        editor = self.ready_editor()
        before = editor.complete_when_loaded(kUri, *kCursor)[0]
        pid = self.daemon_pid()
        self.kill_and_wait()
        editor.complete(kUri, *kCursor)  # at once; the model may still be loading
        after = editor.complete_when_loaded(kUri, *kCursor)[0]
        self.assertEqual(after, before)
        self.assertNotEqual(self.daemon_pid(), pid)
        self.assert_nothing_shown(editor)

    def test_a_request_in_flight_is_answered(self):
        editor = self.ready_editor(maxTokens=400)
        editor.complete_when_loaded(kUri, *kCursor)
        requests = [editor.start_completion(uri, *kCursor) for uri in (kUri, kOther) * 3]
        self.assertIsNotNone(self.kill_daemon())
        for request in requests:
            self.assertNotIn("error", editor.answer(request))
        self.assert_nothing_shown(editor)

    def test_documents_are_replayed_exactly(self):
        editor = self.ready_editor(text="# é\U0001F600\r\n" + kText)
        editor.open(kOther, "x\n")
        editor.open("file:///closed.py", "gone\n")
        editor.complete_when_loaded(kUri, 0, 0)
        # Rename the function letter by letter, around characters of every length, and rewrite the other document.
        editor.change(kUri, 2, ((0, 5), (0, 5), "fast"), ((1, 4), (1, 13), ""))
        for version, letter in enumerate("fib_number", start=3):
            editor.change(kUri, version, ((1, version + 1), (1, version + 1), letter))
        editor.notify("textDocument/didChange", {"textDocument": {"uri": kOther, "version": 9},
                                                 "contentChanges": [{"text": kOtherText}]})
        editor.notify("textDocument/didClose", {"textDocument": {"uri": "file:///closed.py"}})
        texts = {kUri: "# é\U0001F600fast\r\n" + kText.replace("def fibonacci", "def fib_number"),
                 kOther: kOtherText}
        places = {kUri: [(4, 30), (3, 8), (1, 15), (0, 9)], kOther: [(3, 17), (4, 10), (1, 12)]}

        def answers(asked):
            """What a daemon that just opened these texts says, and how many tokens it read for that."""
            found = []
            for uri, positions in places.items():
                for line, character in positions:
                    items, receipt = asked.complete_when_loaded(uri, line, character)
                    found.append(([item["insertText"] for item in items], receipt["promptTokens"],
                                  receipt["version"]))
            return found

        # The expected answers are those of another editor that opens the final texts.
        self.kill_and_wait()
        other = self.editor()
        other.initialize()
        for uri, version in ((kUri, 12), (kOther, 9)):
            other.notify("textDocument/didOpen", {"textDocument": {
                "uri": uri, "languageId": "python", "version": version, "text": texts[uri]}})
        expected = answers(other)
        other.leave()
        self.kill_and_wait()
        self.assertEqual(answers(editor), expected)
        items, receipt = editor.complete("file:///closed.py", 0, 0)
        self.assertEqual((items, "not open" in receipt["reason"]), ([], True))
        self.assert_nothing_shown(editor)

    def test_three_deaths_in_a_row_are_survived(self):
        editor = self.ready_editor()
        expected = editor.complete_when_loaded(kUri, *kCursor)[0]
        for _ in range(3):
            self.kill_and_wait()
            self.assertEqual(editor.complete_when_loaded(kUri, *kCursor)[0], expected)
        self.assert_nothing_shown(editor)

    def test_all_editors_share_the_next_daemon(self):
        editors = [self.ready_editor() for _ in range(5)]
        for editor in editors:
            editor.complete_when_loaded(kUri, *kCursor)
        self.kill_and_wait()
        for editor in editors:
            editor.complete(kUri, *kCursor)
        pids = {editor.ask("efim/status", None)["pid"] for editor in editors}
        self.assertEqual(len(pids), 1)

    def test_an_idle_editor_lets_a_stopped_daemon_rest(self):
        editor = self.ready_editor()
        pid = self.daemon_pid()
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        self.assertIsNone(self.status())
        editor.complete(kUri, *kCursor)
        self.assertNotEqual(self.daemon_pid(), pid)

    def test_an_editor_that_dies_takes_its_bridge_along(self):
        editor = self.ready_editor()
        editor.child.stdin.close()
        self.assertEqual(editor.child.wait(kPatienceS), 0)


if __name__ == "__main__":
    unittest.main()

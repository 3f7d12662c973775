"""An upgrade under running editors: the new build takes over when the old one is idle, and the model is in memory once."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading
import unittest

from lsp_peer import Editor
from user import UserTest, kCursor, kEfimd, kModel, kRoot, kText, kUri, poll
from private_daemon import processes_of  # user.py knows where it is

kNext = os.environ["EFIMD_NEXT"]  # the same program with another version, set by ctest
kNextVersion = "99.0"
kOther = "file:///project/other.py"


def has_the_model(pid):
    """Whether a process has the model mapped."""
    try:
        return kModel.name in pathlib.Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False  # it has ended


def daemons_with_a_model(home):
    """Pids of this user's daemons that have the model mapped at one moment, which is between the two looks at all of them."""
    seen = [pid for pid in processes_of(home) if has_the_model(pid)]
    return [pid for pid in seen if has_the_model(pid)]


class UpgradeTest(UserTest):
    model = None

    def setUp(self):
        super().setUp()
        self.environment["EFIMD_MODEL"] = str(kModel)
        self.program = self.folder / "bin" / "efimd"
        self.install(kEfimd, self.program)

    def install(self, build, place):
        """As package managers do: a new file takes the name."""
        place.parent.mkdir(exist_ok=True)
        shutil.copy(build, place.with_name("new"))
        place.with_name("new").rename(place)

    def bridge(self, program, uri=kUri):
        editor = Editor([str(program), "lsp"], self.environment)
        self.addCleanup(editor.close)
        editor.initialize()
        editor.open(uri, kText)
        return editor

    def wait_for_version(self, version):
        return poll(lambda: (now := self.status()) and now["version"] == version
                    and now["state"]["name"] == "ready" and now["pid"], f"a daemon of {version}")

    def suggested(self, editor, uri):
        return [item["insertText"] for item in editor.complete_when_loaded(uri, *kCursor)[0]]

    def assert_nothing_shown(self, *editors):
        for editor in editors:
            self.assertEqual([m for m in editor.heard if m["method"].startswith("window/show")], [])

    def test_a_new_build_takes_over_in_place_and_no_editor_loses_anything(self):
        before = self.bridge(self.program)
        other = self.bridge(self.program, kOther)
        expected = {uri: self.suggested(editor, uri) for editor, uri in ((before, kUri), (other, kOther))}
        self.assertTrue(all(expected.values()))
        other.leave()
        old_pid, together, over = self.daemon_pid(), set(), threading.Event()

        def watch():
            while not over.wait(0.001):  # leaves the processor to what it watches
                together.add(len(daemons_with_a_model(self.folder)))

        watcher = threading.Thread(target=watch)
        self.addCleanup(over.set)  # also where something fails on the way
        watcher.start()
        self.install(kNext, self.program)
        after = self.bridge(self.program, kOther)
        after.complete(kOther, *kCursor)
        new_pid = self.wait_for_version(kNextVersion)
        over.set()
        watcher.join()
        self.assertNotEqual(new_pid, old_pid)
        if os.geteuid() == 0:  # a daemon hides what it has mapped from all others
            self.assertEqual(max(together), 1, "two models were in memory")
        for editor, uri in ((before, kUri), (after, kOther)):
            self.assertEqual(self.suggested(editor, uri), expected[uri])
        self.assertEqual(self.daemon_pid(), new_pid, "they share the new daemon")
        self.assert_nothing_shown(before, after)

    def test_who_types_meanwhile_gets_every_answer(self):
        typing = self.bridge(self.program)
        typing.complete_when_loaded(kUri, *kCursor)
        self.install(kNext, self.program)
        self.bridge(self.program, kOther)
        for version in range(2, 42):  # a letter and its taking back, and a request at once
            typing.change(kUri, version, ((3, 30), (3, 30), "n"), ((3, 30), (3, 31), ""))
            self.assertNotIn("error", typing.answer(typing.start_completion(kUri, *kCursor)))
        self.wait_for_version(kNextVersion)  # the pause that it waits for
        self.assertNotIn("error", typing.answer(typing.start_completion(kUri, *kCursor)))
        self.assert_nothing_shown(typing)

    def test_an_editor_of_an_earlier_build_leaves_a_later_daemon_alone(self):
        later = self.folder / "later" / "efimd"
        self.install(kNext, later)
        first = self.bridge(later)
        first.complete_when_loaded(kUri, *kCursor)
        pid = self.daemon_pid()
        second = self.bridge(self.program, kOther)
        self.assertTrue(second.complete_when_loaded(kOther, *kCursor)[0])
        self.assertEqual((self.daemon_pid(), self.status()["version"]), (pid, kNextVersion))

    def test_a_downgrade_counts_too(self):
        self.install(kNext, self.program)
        before = self.bridge(self.program)
        before.complete_when_loaded(kUri, *kCursor)
        self.install(kEfimd, self.program)
        self.bridge(self.program, kOther)
        poll(lambda: (now := self.status()) and now["version"] != kNextVersion, "the daemon of the lower version")
        self.assertTrue(before.complete_when_loaded(kUri, *kCursor)[0])

    def test_a_daemon_that_cannot_retire_is_named_once_with_the_remedy(self):
        old = subprocess.Popen([sys.executable, kRoot / "tests/support/old_daemon.py", self.runtime / "daemon.sock"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(old.communicate)
        self.addCleanup(old.kill)
        old.stdout.readline()
        editor = self.bridge(self.program)
        asked = {"textDocument": {"uri": kUri}, "position": dict(zip(("line", "character"), kCursor)), "context": {"triggerKind": 1}}
        self.assertEqual(editor.ask("textDocument/inlineCompletion", asked), {"items": []})
        shown = [m["params"]["message"] for m in editor.heard if m["method"] == "window/showMessage"]
        self.assertEqual(len(shown), 1, shown)
        self.assertIn("efimd stop", shown[0])
        # The remedy, tried.
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        # Until the bridge sees the old daemon's end, it answers for it, with no receipt.
        poll(lambda: editor.ask("textDocument/inlineCompletion", asked)["items"], "a suggestion of a new daemon")

    def test_doctor_says_that_another_build_runs(self):
        self.bridge(self.program).complete_when_loaded(kUri, *kCursor)
        done = subprocess.run([kNext, "doctor"], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        self.assertIn("is another build", done.stdout)
        self.assertIn("efimd stop", done.stdout)


if __name__ == "__main__":
    unittest.main()

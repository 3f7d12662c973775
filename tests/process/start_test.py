"""Starting: how long an editor waits, how much memory is held, and that a race makes one daemon.

Times are the best of several tries, as many as a busy machine needs for one that it did not interrupt.
"""

import pathlib
import time
import unittest

from user import UserTest, kCursor, kModel, kText, kUri, poll

kTriesMax = 30
kInitializeWarmMs = 50
kInitializeColdMs = 300
kFirstSuggestionMs = 1000
kKvBudgetMb = 64
kBridges = 30


def milliseconds_since(start):
    return (time.perf_counter() - start) * 1e3


def resident_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} says nothing of its memory")


def best_of_tries(once, limit):
    """The shortest time, in milliseconds, of the tries until one is within the limit."""
    best = float("inf")
    for _ in range(kTriesMax):
        best = min(best, once())
        if best < limit:
            break
    return best


class StartTest(UserTest):
    model = None

    config = f"[cache]\nmemory_mb = {kKvBudgetMb}\n"

    def initialize_ms(self):
        """From the start of `efimd lsp` to the answer."""
        start = time.perf_counter()
        editor = self.editor()
        editor.initialize()
        taken = milliseconds_since(start)
        editor.leave()
        return taken

    def test_initialize_with_the_daemon_up(self):
        self.initialize_ms()
        taken = best_of_tries(self.initialize_ms, kInitializeWarmMs)
        print(f"initialize, daemon up: {taken:.1f} ms")
        self.assertLess(taken, kInitializeWarmMs)

    def test_initialize_that_starts_the_daemon(self):
        def once():
            taken = self.initialize_ms()
            self.assertEqual(self.run_efimd("stop").returncode, 0)
            return taken

        taken = best_of_tries(once, kInitializeColdMs)
        print(f"initialize, daemon started: {taken:.1f} ms")
        self.assertLess(taken, kInitializeColdMs)

    def test_first_suggestion_after_a_cold_start(self):
        def once():
            start = time.perf_counter()
            editor = self.ready_editor()
            items, receipt = editor.complete_when_loaded(kUri, *kCursor)
            taken = milliseconds_since(start)
            self.assertTrue(items, receipt)
            editor.leave()
            self.assertEqual(self.run_efimd("stop").returncode, 0)
            return taken

        taken = best_of_tries(once, kFirstSuggestionMs)
        print(f"first suggestion after a cold start: {taken:.1f} ms")
        self.assertLess(taken, kFirstSuggestionMs)

    def test_resident_size(self):
        editor = self.ready_editor()
        editor.complete_when_loaded(kUri, *kCursor)
        for i in range(40):
            uri = f"file:///project/{i}.py"
            editor.open(uri, kText.replace("fibonacci", f"number_{i}") * 12)
            editor.complete(uri, 20, 4)
        held = resident_bytes(self.daemon_pid())
        allowed = kModel.stat().st_size + (kKvBudgetMb + 200) * 2**20
        print(f"resident: {held / 2**20:.1f} MiB of {allowed / 2**20:.1f}")
        self.assertLessEqual(held, allowed)
        budget = self.status()["memory"]["device"]["budgetBytes"]  # whole pages of it
        self.assertAlmostEqual(budget / 2**20, kKvBudgetMb, delta=0.1)


class RaceTest(UserTest):
    def test_thirty_racing_bridges_make_one_daemon(self):
        editors = [self.editor() for _ in range(kBridges)]
        for editor in editors:
            editor.initialize()
        pids = {editor.ask("efim/status", None)["pid"] for editor in editors}
        self.assertEqual(len(pids), 1, pids)
        log = (self.folder / "state" / "efimd.log").read_text()
        self.assertEqual(log.count(" listens at "), 1, log)


class ChangedConfigTest(UserTest):
    """D-7 by the real file, in the real sandbox."""

    def test_a_changed_configuration_is_in_force_without_a_stop(self):
        editor = self.ready_editor()
        self.assertTrue(editor.complete_when_loaded(kUri, *kCursor)[0])
        before = self.daemon_pid()
        config = self.folder / "config.toml"
        config.write_text("[completion\n")
        poll(lambda: [w for w in self.status()["config"]["warnings"] if "goes on" in w["message"]], "a warning of the file")
        self.assertEqual(self.daemon_pid(), before)
        config.write_text("[completion]\nhealing = \"off\"\n[device]\nthreads = 1\n")
        poll(lambda: (now := self.status()) and now["pid"] != before, "the next daemon")
        self.assertTrue(editor.complete_when_loaded(kUri, *kCursor)[0], "the editor goes on with its documents")
        self.assertEqual(self.status()["config"]["warnings"], [])
        shown = [m["params"]["message"] for m in editor.heard if m["method"] == "window/showMessage"]
        self.assertEqual(len(shown), 1, shown)
        self.assertIn("config.toml:1: ", shown[0])


if __name__ == "__main__":
    unittest.main()

"""Clients without measure: the daemon's memory is bounded while they are there and comes back when they go, and an editor is served.

EFIMD_BAD_CLIENTS of each kind, for EFIMD_BAD_SECONDS; by hand 100 for 600 s.
"""

import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

from user import UserTest, kCursor, kRoot, kUri, poll

kClients = int(os.environ.get("EFIMD_BAD_CLIENTS", "4"))
kSeconds = float(os.environ.get("EFIMD_BAD_SECONDS", "6"))
kMiB = 2**20
kKvBytes = 64 * kMiB
kOverBytes = 256 * kMiB
kTextBytes = 512 * kMiB  # the most that may be open in all (TextBudget)
kBackBytes = 64 * kMiB
kBackS = 60


def resident_bytes(pid):
    """Of its own, not of the model's file, which is mapped."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024


class BadClientsTest(UserTest):
    config = "[cache]\nmemory_mb = 64\ndisk_mb = 0\n"

    def is_kv_back(self):
        """The KV of what the bad clients had open is gone, the editor's is not: half of the budget is more than one file takes."""
        return 0 < self.status()["memory"]["device"]["usedBytes"] <= kKvBytes / 2

    def test_memory_is_bounded_and_comes_back(self):
        editor = self.ready_editor()
        editor.complete_when_loaded(kUri, *kCursor)
        self.assertEqual(self.status()["state"]["name"], "ready")
        pid = self.daemon_pid()
        start = resident_bytes(pid)
        bad = subprocess.Popen([sys.executable, kRoot / "tests/support/bad_clients.py", self.runtime / "daemon.sock", str(kClients), str(kSeconds)],
                               stdout=subprocess.PIPE, text=True)
        self.addCleanup(bad.kill)
        most, answered, longest = start, 0, 0.0
        while bad.poll() is None:
            begun = time.monotonic()
            editor.complete(kUri, *kCursor)
            longest = max(longest, time.monotonic() - begun)
            answered += 1
            most = max(most, resident_bytes(pid))
            time.sleep(0.05)  # a typist's pace; it decides nothing
        counts = bad.communicate()[0].strip()
        print(f"{kClients} of each kind for {kSeconds:.0f} s, connections {counts}: memory {start >> 20} MiB before, at most {most >> 20}; "
              f"{answered} completions of an editor, the slowest in {longest:.3f} s")
        self.assertLess(most, kKvBytes + kOverBytes + 2 * kTextBytes)
        ended = time.monotonic()
        poll(lambda: resident_bytes(pid) <= start + kBackBytes and self.is_kv_back(), "memory and KV come back", kBackS)
        print(f"back at {resident_bytes(pid) >> 20} MiB {time.monotonic() - ended:.1f} s after they left")
        self.assertGreater(answered, 0)
        self.assertTrue(editor.complete(kUri, *kCursor)[0])
        self.assertIn(b"serve", pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())


if __name__ == "__main__":
    unittest.main()

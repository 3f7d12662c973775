"""Editors type while daemons and editors die at random moments: each request is answered once, and nothing grows.

EFIMD_SOAK_S says for how many seconds; by hand hours, or 86400.
"""

import os
import pathlib
import random
import time
import unittest

from endurance_test import Typist
from user import UserTest, kPatienceS, poll

kSeconds = float(os.environ.get("EFIMD_SOAK_S", "10"))
kEditors = 3
kLivesS = 3.0  # about so long until somebody dies
kFilesMax = 20  # that a daemon may have open beyond those of its first minute
# The user is told of four failures in a row (bridge.h). A daemon that dies may be two: its socket still takes a bridge that comes back at once.
kOutageDeaths = 2


class SoakTest(UserTest):
    config = "[cache]\nmemory_mb = 16\ndisk_mb = 64\n"

    def new_typist(self, seed):
        editor = self.editor()
        editor.initialize(maxTokens=2)
        return Typist(editor, seed)

    def open_files(self, editor):
        """Of the daemon, which comes back once `editor` asks if the last one has just died."""
        def running():
            editor.ask("efim/version", None)
            return self.status()
        pid = poll(running, "a daemon")["pid"]
        return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))

    def told(self, editor):
        """Texts that the user was shown."""
        return {message["params"]["message"] for message in editor.heard if message["method"] == "window/showMessage"}

    def test_random_deaths(self):
        chooser = random.Random(7)
        typists = [self.new_typist(seed) for seed in range(kEditors)]
        typists[0].editor.complete_when_loaded("file:///project/fibonacci.py", 3, 30)
        self.assertEqual(self.status()["state"]["name"], "ready")
        begun = time.monotonic()
        end, next_death = begun + kSeconds, begun + kLivesS
        asked = daemons = editors = 0
        files = self.open_files(typists[0].editor)
        while (now := time.monotonic()) < end:
            burst = [(typist, typist.step()) for typist in typists for _ in range(chooser.choice((1, 1, 1, 3)))]
            if now > next_death:
                next_death = now + chooser.uniform(0.2, 2) * kLivesS
                if chooser.random() < 0.7:
                    daemons += self.kill_daemon() is not None
                else:
                    number = chooser.randrange(kEditors)
                    typists[number].editor.close()
                    burst = [(typist, request) for typist, request in burst if typist is not typists[number]]
                    typists[number] = self.new_typist(1000 + editors)
                    editors += 1
            for typist, request in burst:
                self.assertNotIn("error", typist.editor.answer(request, seconds=kPatienceS))
                typist.editor.keep_heard("window/showMessage", "window/showMessageRequest")
            asked += len(burst)
        for typist in typists:
            typist.editor.ask("efim/version", None)
            self.assertEqual(typist.editor.answers, {}, "a request was answered twice")
            if daemons < kOutageDeaths:
                self.assert_nothing_shown(typist.editor)
            for text in self.told(typist.editor):
                self.assertTrue(text.startswith("No completions for now: "), text)
        files_now = self.open_files(typists[0].editor)
        print(f"{asked} requests in {time.monotonic() - begun:.0f} s, {daemons} daemons and {editors} editors died; "
              f"{files} files were open at first, {files_now} are")
        self.assertLess(files_now, files + kFilesMax)
        verified = self.run_efimd("cache", "verify")
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)


if __name__ == "__main__":
    unittest.main()

"""The second line of defence: a daemon's memory stays its own, and limits do not end it."""

import os
import pathlib
import re
import resource
import signal
import subprocess
import unittest

from user import UserTest, kEfimd, poll

kNobody = 65534


class MemoryTest(UserTest):
    def test_a_daemon_that_crashes_writes_no_core(self):
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
        self.ready_editor()
        pid = self.daemon_pid()
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        self.assertRegex(limits, r"Max core file size\s+0\s+0\s")

    @unittest.skipUnless(os.geteuid() == 0, "starts a daemon of another user")
    def test_the_users_other_programs_cannot_read_a_daemons_memory(self):
        if subprocess.run([kEfimd, "--version"], user=kNobody, group=kNobody, extra_groups=[],
                          capture_output=True, check=False).returncode != 0:
            self.skipTest("the program is not readable for another user")
        os.chown(self.folder, kNobody, kNobody)
        serving = subprocess.Popen([kEfimd, "serve"], env=self.environment, user=kNobody,
                                   group=kNobody, extra_groups=[], stderr=subprocess.DEVNULL)
        self.addCleanup(serving.wait)
        self.addCleanup(serving.kill)
        poll(lambda: (self.runtime / "daemon.sock").exists(), "the daemon listens")
        # The kernel gives the files of a process that is not dumpable to root.
        self.assertEqual(os.stat(f"/proc/{serving.pid}/mem").st_uid, 0)
        refused = subprocess.run(["cat", f"/proc/{serving.pid}/environ"], user=kNobody, group=kNobody,
                                 extra_groups=[], capture_output=True, check=False)
        self.assertNotEqual(refused.returncode, 0)

    def test_a_limit_on_files_costs_pages_not_the_daemon(self):
        serving = subprocess.Popen(
            [kEfimd, "serve"], env=self.environment, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))
        self.addCleanup(serving.wait)
        self.addCleanup(serving.kill)
        poll(lambda: (self.runtime / "daemon.sock").exists(), "the daemon listens")
        ignored = re.search(r"SigIgn:\s+([0-9a-f]+)",
                            pathlib.Path(f"/proc/{serving.pid}/status").read_text())
        self.assertTrue(int(ignored[1], 16) >> (signal.SIGXFSZ - 1) & 1)
        serving.send_signal(signal.SIGXFSZ)
        self.assertIsNotNone(self.status())


if __name__ == "__main__":
    unittest.main()

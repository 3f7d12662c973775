"""The second line of defence: a daemon's memory stays its own, and limits do not end it."""

import errno
import os
import pathlib
import re
import resource
import signal
import subprocess
import unittest

from user import UserTest, kCursor, kEfimd, kText, kUri, poll

kNobody = 65534
kTries = os.environ["EFIMD_SANDBOX_TRIES"]  # set by ctest


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


class SandboxTest(UserTest):
    config = "[cache]\ngitignore = true\n"

    def tries(self, config=""):
        """What came of each try from inside a daemon: its errno, 0 where it was done."""
        (self.folder / "config.toml").write_text(self.config + config)
        (self.folder / ".ssh").mkdir(exist_ok=True)
        (self.folder / ".ssh" / "id_ed25519").write_text("secret")
        (self.folder / "notes.txt").write_text("notes")
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        told = self.runtime / "tries"
        serving = subprocess.Popen([kEfimd, "serve"], stderr=subprocess.PIPE, text=True,
                                   env=self.environment | {"LD_PRELOAD": kTries, "EFIMD_TRIES": str(told)})
        self.addCleanup(serving.stderr.close)
        self.addCleanup(serving.wait)
        self.addCleanup(serving.kill)
        poll(lambda: told.exists() and told.read_text().endswith("\n") or serving.poll() is not None,
             "the daemon has tried")
        return dict((name, int(code)) for name, code in map(str.split, told.read_text().splitlines()))

    def test_a_daemon_runs_no_program_and_has_no_network(self):
        tried = self.tries()
        sandbox = self.status()["sandbox"]
        if not sandbox["calls"]:
            self.skipTest(sandbox["why"])
        for name in ("execve", "io_uring", "ptrace"):
            self.assertEqual(tried[name], errno.EPERM, name)
        for name in ("inet", "inet6", "netlink"):
            self.assertEqual(tried[name], errno.EAFNOSUPPORT, name)
        self.assertEqual(tried["local"], 0)

    def test_a_daemon_opens_no_file_that_it_has_no_need_of(self):
        tried = self.tries()
        sandbox = self.status()["sandbox"]
        if not sandbox["files"]:
            self.skipTest(sandbox["why"])
        for name in ("ssh", "home", "plant"):
            self.assertEqual(tried[name], errno.EACCES, name)

    def test_the_sandbox_can_be_turned_off(self):
        tried = self.tries("[daemon]\nsandbox = false\n")
        self.assertEqual((tried["execve"], tried["ssh"]), (0, 0))
        self.assertEqual(self.status()["sandbox"], {"calls": False, "files": False, "why": ""})

    def test_projects_are_read_also_those_that_were_made_later(self):
        editor = self.ready_editor()
        editor.complete_when_loaded(kUri, *kCursor)
        project = self.folder / "project"
        (project / ".git").mkdir(parents=True)
        (project / ".gitignore").write_text("made.py\n")
        for name in ("made.py", "own.py"):
            editor.open(f"file://{project / name}", kText)
        _, receipt = editor.complete(f"file://{project / 'made.py'}", *kCursor)
        self.assertIn("git ignores it", receipt["notStored"])
        _, receipt = editor.complete(f"file://{project / 'own.py'}", *kCursor)
        self.assertNotIn("notStored", receipt)


if __name__ == "__main__":
    unittest.main()

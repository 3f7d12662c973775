"""The second line of defence: a daemon's memory stays its own, and limits do not end it."""

import errno
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import unittest

from user import UserTest, kCursor, kEfimd, kText, kUri, poll

kNobody, kOther = 65534, 65532  # another one, whose processes are counted
kTries = os.environ["EFIMD_SANDBOX_TRIES"]  # set by ctest


@unittest.skipUnless(shutil.which("readelf"), "readelf is missing; it comes with the compiler")
class ProgramTest(unittest.TestCase):
    """As hardening-check looks at a program."""

    def readelf(self, *options):
        return subprocess.run(["readelf", "--wide", *options, kEfimd], check=True, capture_output=True, text=True).stdout

    def test_the_program_is_hardened(self):
        header, dynamic, segments = self.readelf("-h"), self.readelf("-d"), self.readelf("-l")
        self.assertIn("DYN (Position-Independent Executable", header)
        self.assertIn("BIND_NOW", dynamic)
        self.assertIn("GNU_RELRO", segments)
        self.assertRegex(segments, r"GNU_STACK .* RW ")
        symbols = self.readelf("--dyn-syms")
        self.assertIn("__stack_chk_fail", symbols)
        self.assertRegex(symbols, r"__\w+_chk@")
        self.assertNotRegex(dynamic, r"R(UN)?PATH")


class LimitsTest(UserTest):
    @unittest.skipUnless(os.geteuid() == 0, "starts a daemon of another user")
    def test_a_limit_on_threads_ends_with_a_message_or_serves(self):
        """The kernel does not count root's."""
        for path in (self.folder, *self.folder.parents[:-1]):
            if not path.stat().st_mode & stat.S_IXOTH:
                self.addCleanup(path.chmod, stat.S_IMODE(path.stat().st_mode))
                path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IXOTH)
        os.chown(self.folder, kOther, kOther)
        for limit in range(8):
            with self.subTest(limit=limit):
                serving = subprocess.Popen(
                    [kEfimd, "serve"], env=self.environment, user=kOther, group=kOther, extra_groups=[],
                    stderr=subprocess.PIPE, text=True,
                    preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit)))
                poll(lambda serving=serving: serving.poll() is not None or (self.runtime / "daemon.sock").exists(), "it ends or listens")
                ended = serving.poll()
                serving.terminate()
                said = serving.communicate()[1]
                self.assertIn(ended, (None, 1), said)
                if ended == 1:
                    self.assertRegex(said, rf"efimd: .*'ulimit -u' says {limit}")
                (self.runtime / "daemon.sock").unlink(missing_ok=True)

    def test_little_memory_is_enough_or_the_limit_is_named(self):
        """A limit that is enough stays so when it is raised: a graphics driver, which then fits too, takes nothing from the KV."""
        served = []
        for mib in range(40, 321, 20):
            with self.subTest(mib=mib):
                serving = subprocess.Popen(
                    [kEfimd, "serve"], env=self.environment, stderr=subprocess.PIPE, text=True,
                    preexec_fn=lambda mib=mib: resource.setrlimit(resource.RLIMIT_AS, (mib * 2**20,) * 2))
                # Asked once more, a busy daemon may not answer in time.
                found = poll(lambda serving=serving: self.status_after_loading() or serving.poll() is not None, "it ends or has loaded")
                state = found if isinstance(found, dict) else None
                serving.terminate()
                said = serving.communicate()[1]
                self.assertIn(serving.returncode, (0, 1), said)
                told = said if state is None else state["message"]
                print(f"{mib} MiB: {(state or {}).get('name', 'ended')} {told.strip().splitlines()[-1:]}")
                served.append(state is not None and state["name"] == "ready")
                if not served[-1]:
                    self.assertIn(f"'ulimit -v' says {mib * 1024} KiB", told)
                (self.runtime / "daemon.sock").unlink(missing_ok=True)
        self.assertEqual(served, sorted(served), "more memory is less")
        self.assertTrue(served[-1])

    def status_after_loading(self):
        """The model's state, None while it loads or nobody listens."""
        state = (self.status() or {}).get("state")
        return state if state and state["name"] != "loading" else None

    def test_pipes_in_place_of_files_hold_nothing_up(self):
        state = self.folder / "state"
        state.mkdir(exist_ok=True)
        for name in ("efimd.log", "model", "pace", "page_key", "taste"):
            os.mkfifo(state / name)
        editor = self.ready_editor()
        self.assertTrue(editor.complete_when_loaded(kUri, *kCursor)[0])
        self.assertRegex((state / "pace").read_text() if (state / "pace").is_file() else "a pipe", r"^efimd pace 1\n[0-9a-f]{32} \d+ \d+\n$")
        self.assertEqual(self.run_efimd("doctor", "--json").stderr, "")
        self.assertEqual(self.run_efimd("stop").returncode, 0)

    def test_a_folder_in_place_of_the_socket_is_named(self):
        (self.runtime / "daemon.sock").mkdir(parents=True)
        self.runtime.chmod(0o700)
        self.assert_fails(self.run_efimd("serve"), "daemon.sock", "cannot be removed")


class MemoryTest(UserTest):
    def test_a_daemon_that_crashes_writes_no_core(self):
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
        self.ready_editor()
        pid = self.daemon_pid()
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        self.assertRegex(limits, r"Max core file size\s+0\s+0\s")

    @unittest.skipUnless(os.geteuid() == 0, "a daemon's environment is root's to read")
    def test_a_daemon_gets_none_of_its_editors_tokens(self):
        editor = self.editor(GITHUB_TOKEN="ghp_secret", MALLOC_CHECK_="3", VIRTUAL_ENV="/env", LC_TIME="C")
        editor.initialize()
        editor.ask("efim/version", None)
        names = {entry.split("=")[0] for entry in pathlib.Path(f"/proc/{self.daemon_pid()}/environ").read_text().split("\0")}
        self.assertFalse(names & {"GITHUB_TOKEN", "MALLOC_CHECK_", "VIRTUAL_ENV", "LD_PRELOAD"})
        self.assertLessEqual({"HOME", "PATH", "LC_TIME", "EFIMD_STATE_DIR"}, names)

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

    def tries(self, config="", by_editor=False):
        """What came of each try from inside a daemon: its errno, 0 where it was done."""
        (self.folder / "config.toml").write_text(self.config + config)
        (self.folder / ".ssh").mkdir(exist_ok=True)
        (self.folder / ".ssh" / "id_ed25519").write_text("secret")
        (self.folder / "notes.txt").write_text("notes")
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        told = self.runtime / "tries"
        tried = {"LD_PRELOAD": kTries, "EFIMD_TRIES": str(told)}
        if by_editor:
            editor = self.editor(**tried)
            editor.initialize()
            editor.ask("efim/version", None)
        else:
            serving = subprocess.Popen([kEfimd, "serve"], stderr=subprocess.DEVNULL, env=self.environment | tried)
            self.addCleanup(serving.wait)
            self.addCleanup(serving.kill)
        poll(lambda: told.exists() and told.read_text().endswith("\n"), "the daemon has tried")
        return dict((name, int(code)) for name, code in map(str.split, told.read_text().splitlines()))

    def test_a_daemon_that_an_editor_started_is_confined_as_any_other(self):
        tried = self.tries(by_editor=True)
        sandbox = self.status()["sandbox"]
        if not sandbox["calls"] or not sandbox["files"]:
            self.skipTest(sandbox["why"])
        refused = {"execve": errno.EPERM, "inet": errno.EAFNOSUPPORT, "ssh": errno.EACCES}
        self.assertEqual({name: tried[name] for name in refused}, refused)

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

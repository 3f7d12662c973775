#!/usr/bin/env python3
"""Autostart: units that systemd accepts, a daemon woken by a socket that it is passed, and what the command does to files.

    autostart_test.py EFIMD EFIMD_TEXTS
"""

import json
import os
import pathlib
import pwd
import plistlib
import shutil
import signal
import socket
import subprocess
import sys
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "tests" / "support"))
from polling import poll  # noqa: E402
from private_daemon import private_daemon  # noqa: E402

kPatienceS = 180


class OwnDaemon(unittest.TestCase):
    efimd = texts = None

    def setUp(self):
        self.environment = self.enterContext(private_daemon(self.efimd))
        self.home = pathlib.Path(self.environment["HOME"])
        self.socket = pathlib.Path(self.environment["EFIMD_RUNTIME_DIR"], "daemon.sock")
        self.socket.parent.mkdir(mode=0o700)

    def run_efimd(self, *arguments, **changed):
        return subprocess.run([self.efimd, *arguments], env=self.environment | changed, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=kPatienceS, check=False)

    def text(self, *kind):
        return subprocess.run([self.texts, *kind], check=True, capture_output=True, text=True).stdout


class Autostart(OwnDaemon):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is missing")
    def test_systemd_verifies_the_units(self):
        units = self.home / "units with blanks"
        units.mkdir()
        (units / "efimd.service").write_text(self.text("service", str(self.efimd)), encoding="utf-8")
        (units / "efimd-plain.service").write_text(self.text("plain_service", str(self.efimd)), encoding="utf-8")
        (units / "efimd-http.service").write_text(self.text("http_service", str(self.efimd)), encoding="utf-8")
        (units / "efimd.socket").write_text(self.text("socket"), encoding="utf-8")
        self.verify(units)

    def verify(self, units):
        if not shutil.which("systemd-analyze"):
            return
        runtime = self.home / "runtime"
        runtime.mkdir(mode=0o700, exist_ok=True)
        environment = self.environment | {"SYSTEMD_UNIT_PATH": f"{units}:", "XDG_RUNTIME_DIR": str(runtime)}
        done = subprocess.run(["systemd-analyze", "--user", "verify", "--man=no", *sorted(units.iterdir())],
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is missing")
    def test_the_services_expose_little(self):
        # 3.0 of 10. systemd judges services of the system: what is true of each user's service, though a user's manager cannot
        # set it without namespaces, is added to the plain one.
        for kind, added in (("service", ""), ("plain_service", "User=someone\nCapabilityBoundingSet=\n")):
            unit = self.home / "efimd.service"
            unit.write_text(self.text(kind, str(self.efimd)) + added, encoding="utf-8")
            done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=30", unit],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_launch_agent_is_a_property_list(self):
        agent = plistlib.loads(self.text("launchd", "/opt/a & b/<efimd>").encode())
        self.assertEqual(agent["ProgramArguments"][:2], ["/opt/a & b/<efimd>", "serve"])

    @unittest.skipUnless(shutil.which("systemd-socket-activate"), "systemd-socket-activate is missing")
    def test_systemd_passes_its_socket_and_the_first_request_is_answered(self):
        names = ["HOME", "PATH", *(name for name in self.environment if name.startswith("EFIMD_"))]
        activator = subprocess.Popen(["systemd-socket-activate", "-l", self.socket, *(f"-E{name}" for name in names),
                                      self.efimd, "serve"], env=self.environment, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(activator.kill)
        # Its name is there a moment before it listens.
        asked = poll(lambda: (done := self.run_efimd("status", "--json")).returncode == 0 and done, "an answer at systemd's socket")
        status = json.loads(asked.stdout)
        self.assertEqual(status["pid"], activator.pid)  # it has become the daemon
        inode = self.socket.stat().st_ino
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        self.assertEqual(activator.wait(kPatienceS), 0)
        self.assertEqual(self.socket.stat().st_ino, inode, "the socket's file is the manager's")

    def test_what_is_no_socket_of_ours_is_refused(self):
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(self.home / "elsewhere"))
            other.listen()
            child = os.fork()
            if child == 0:  # LISTEN_PID must name the process that efimd becomes
                os.dup2(os.dup(other.fileno()), 3)
                os.dup2(os.open(self.home / "said", os.O_WRONLY | os.O_CREAT, 0o600), 2)
                os.execve(self.efimd, [str(self.efimd), "serve"],
                          self.environment | {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())})
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 1)
        self.assertIn("elsewhere", (self.home / "said").read_text())
        self.assertIn("autostart enable", (self.home / "said").read_text())

    def test_without_a_service_manager_the_command_says_that_none_is_needed(self):
        done = self.run_efimd("autostart", "enable")
        self.assertEqual(done.returncode, 0)
        self.assertIn("the first editor starts the daemon", done.stdout)
        self.assertFalse((self.home / ".config/systemd").exists())

    def test_without_home_the_units_are_where_the_system_has_the_users_home(self):
        home = pwd.getpwuid(os.geteuid()).pw_dir
        for value in (None, "", "somewhere"):
            environment = {name: word for name, word in self.environment.items() if name != "HOME"}
            done = subprocess.run([self.efimd, "autostart", "status"], env=environment | ({} if value is None else {"HOME": value}),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=kPatienceS, check=False)
            self.assertIn(f"\n{home}/.config/systemd/user/efimd.socket: ", done.stdout)

    def manager(self, answer="exit 0"):
        """systemctl is the one part that needs a whole login; here it writes down what it was asked."""
        tools = self.home / "tools"
        tools.mkdir(exist_ok=True)
        (tools / "systemctl").write_text(f'#!/bin/sh\necho "$@" >>{self.home}/asked\n{answer}\n', encoding="utf-8")
        (tools / "systemctl").chmod(0o755)
        private = self.home / "runtime/systemd/private"
        private.parent.mkdir(parents=True, exist_ok=True)
        private.touch()
        return {"XDG_RUNTIME_DIR": str(self.home / "runtime"), "PATH": f"{tools}:{self.environment['PATH']}"}

    def units(self):
        folder = self.home / ".config/systemd/user"
        return [path.name for path in folder.rglob("*") if not path.is_dir()] if folder.exists() else []

    def test_the_units_name_the_folders_that_variables_named(self):
        changed = self.manager() | {"EFIMD_RUNTIME_DIR": str(self.home / 'r "$HOME" %t'), "EFIMD_CACHE_DIR": "", "XDG_CACHE_HOME": "/x y"}
        changed |= {"EFIMD_STATE_DIR": ""}
        self.assertEqual(self.run_efimd("autostart", "enable", **changed).returncode, 0)
        folder = self.home / ".config/systemd/user"
        said = [line for line in (folder / "efimd.service").read_text().splitlines() if line.startswith("Environment=")]
        self.assertEqual(said, [f'Environment="EFIMD_RUNTIME_DIR={self.home}/r \\"$HOME\\" %%t"',
                                f'Environment="EFIMD_CONFIG={self.home}/config.toml"', 'Environment="EFIMD_CACHE_DIR=/x y/efimd"'])
        for unit in ("efimd-plain.service", "efimd-http.service"):
            self.assertTrue(set(said) <= set((folder / unit).read_text().splitlines()), unit)
        self.assertIn(f'ListenStream={self.home}/r "$HOME" %%t/daemon.sock\n', (folder / "efimd.socket").read_text())
        self.verify(folder)

    def test_a_folder_of_systemds_tools_is_no_manager(self):
        changed = self.manager()
        (self.home / "runtime/systemd/private").unlink()  # as systemd-analyze leaves it
        self.assertIn("no service manager", self.run_efimd("autostart", "enable", **changed).stdout)
        self.assertEqual(self.units(), [])

    def test_what_could_not_be_enabled_leaves_nothing(self):
        done = self.run_efimd("autostart", "enable", **self.manager("exit 1"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("daemon-reload ended with 1", done.stderr)
        self.assertEqual(self.units(), [])

    def test_what_was_enabled_is_removed_by_a_manager_that_refuses_and_without_one(self):
        for manager in ("a manager that refuses", ""):
            self.assertEqual(self.run_efimd("autostart", "enable", **self.manager()).returncode, 0)
            wanted = self.home / ".config/systemd/user/sockets.target.wants/efimd.socket"  # systemctl's own link
            wanted.parent.mkdir(exist_ok=True)
            wanted.symlink_to(wanted.parent.parent / "efimd.socket")
            self.assertEqual(len(self.units()), 5)
            done = self.run_efimd("autostart", "disable", **(self.manager("exit 1") if manager else {}))
            self.assertEqual(done.returncode, 1 if manager else 0, done.stderr)
            self.assertEqual(self.units(), [], manager)

    def test_enable_stops_the_daemon_that_runs_and_disable_takes_everything_back(self):
        changed = self.manager()
        serving = subprocess.Popen([self.efimd, "serve"], env=self.environment, stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(serving.kill)
        poll(lambda: self.run_efimd("status").returncode == 0, "the daemon")
        done = self.run_efimd("autostart", "enable", **changed)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(serving.wait(kPatienceS), 0, "two models would be in memory")
        units = self.home / ".config/systemd/user"
        self.assertIn(f"ListenStream={self.socket}\n", (units / "efimd.socket").read_text())
        self.assertIn(f'ExecStart="{self.efimd}" serve', (units / "efimd.service").read_text())
        self.assertEqual(self.run_efimd("autostart", "disable", **changed).returncode, 0)
        self.assertEqual(list(units.iterdir()), [])
        self.assertEqual((self.home / "asked").read_text().splitlines(), [
            "--user daemon-reload", "--user enable --now efimd.socket",
            "--user disable --now efimd.socket efimd.service efimd-plain.service efimd-http.service", "--user daemon-reload"])


class Watch(OwnDaemon):
    def test_a_watched_status_is_plain_where_there_is_no_terminal(self):
        watching = subprocess.Popen([self.efimd, "status", "--watch", "--json"], env=self.environment,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(watching.kill)
        self.assertIn("waiting", watching.stderr.readline())  # for a daemon, which comes now
        serving = subprocess.Popen([self.efimd, "serve"], env=self.environment, stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(serving.wait, kPatienceS)
        self.addCleanup(self.run_efimd, "stop")
        for _ in range(2):
            self.assertEqual(json.loads(watching.stdout.readline())["pid"], serving.pid)
        watching.send_signal(signal.SIGTERM)
        watching.communicate(timeout=kPatienceS)

    @unittest.skipUnless(shutil.which("tmux"), "tmux is missing; scripts/deps --tests installs it")
    def test_a_watched_status_keeps_to_the_terminal_and_leaves_it_as_it_was(self):
        serving = subprocess.Popen([self.efimd, "serve"], env=self.environment, stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(serving.wait, kPatienceS)
        self.addCleanup(self.run_efimd, "stop")

        def tmux(*arguments):
            return subprocess.run(["tmux", "-S", self.home / "tmux", "-f", "/dev/null", *arguments], check=True,
                                  env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
        tmux("new-session", "-d", "-x", "80", "-y", "24", "sh")
        self.addCleanup(subprocess.run, ["tmux", "-S", self.home / "tmux", "kill-server"], check=False, capture_output=True)
        tmux("send-keys", "echo before; efimd status --watch", "Enter")
        poll(lambda: "device  [" in tmux("capture-pane", "-p"), "the live view")
        tmux("resize-window", "-x", "50", "-y", "6")
        poll(lambda: "more lines" in tmux("capture-pane", "-p"), "the smaller view")
        tmux("resize-window", "-x", "80", "-y", "24")
        tmux("send-keys", "q")
        poll(lambda: "before" in tmux("capture-pane", "-p"), "the shell")
        tmux("send-keys", "efimd status --watch --why", "Enter")
        poll(lambda: "no request was planned yet" in tmux("capture-pane", "-p"), "the live view of plans")
        tmux("send-keys", "q")
        poll(lambda: "before" in tmux("capture-pane", "-p"), "the shell again")
        self.assertNotIn("device  [", tmux("capture-pane", "-p"))


if __name__ == "__main__":
    OwnDaemon.efimd, OwnDaemon.texts = map(pathlib.Path, (sys.argv.pop(1), sys.argv.pop(1)))
    unittest.main(verbosity=2)

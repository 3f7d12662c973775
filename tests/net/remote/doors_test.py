#!/usr/bin/env python3
"""One process serves clients by HTTP and the daemon's engine elsewhere, in whatever order they are wanted, and whoever is killed."""

import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import time
import unittest

from engine_server import kText as kRemoteText, wait_until
from engine_test import Remote


def children_of(pid):
    """Of its main thread; empty if it is gone."""
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def ports():
    return random.Random(os.getpid()).sample(range(20000, 32000), 40)


class Doors(Remote):
    port, enable = 0, False

    def configure(self, url=None, engine=True):
        """`engine`: whether [engine] names a server."""
        super().configure(url)
        config = self.folder / "config.toml"
        text = config.read_text()
        if not engine:
            text = text[text.index("[completion]"):]
        config.write_text(text + f"[http]\nport = {self.port or 8012}\nenable = {str(self.enable).lower()}\n")

    def open_http(self, engine=True):
        """A port that tests beside this one do not try: a server that starts again must find it free."""
        for self.port in ports():
            self.configure(engine=engine)
            started = self.run_efimd("http", "--background")
            if started.returncode == 0:
                return
            self.assertIn("cannot be used", started.stderr)
        raise AssertionError("no port is free")

    def holder(self, door):
        """The process that has this lock, None if none has."""
        lock = self.runtime / f"{door}.lock"
        locks = pathlib.Path("/proc/locks").read_text()
        if not lock.exists() or f":{lock.stat().st_ino} " not in locks:
            return None
        return int(lock.read_text() or 0) or None  # empty for the moment in which it is taken

    def programs(self):
        """The starters of efimd-http of this user."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                command = process.joinpath("cmdline").read_bytes()
                home = str(self.runtime).encode() in process.joinpath("environ").read_bytes()
                parent = int(process.joinpath("stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if home and command.split(b"\0")[0].endswith(b"/efimd-http"):
                found.append((int(process.name), parent))
        pids = {pid for pid, _ in found}
        return [pid for pid, parent in found if parent not in pids]

    def token(self):
        return self.run_efimd("http", "--print-token").stdout.strip()

    def health(self):
        """HTTP's answer, 0 if there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/health", headers={"Authorization": f"Bearer {self.token()}"})
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    def check_both(self, editor, name):
        """Both doors are served, by one process."""
        wait_until(lambda: self.health() == 200, f"HTTP, {name}")
        self.recover(editor, name)
        self.assertEqual(self.holder("http"), self.holder("remote"), name)
        self.assertEqual(self.programs(), [self.holder("http")], name)


class OneProcess(Doors):
    def test_both_are_served_by_one_process_that_outlives_what_is_killed(self):
        self.open_http()
        editor = self.start()
        self.assertEqual(self.ask(editor)[0], kRemoteText.rstrip("\n"))
        self.check_both(editor, "begun")
        starter = self.holder("http")
        os.kill(children_of(starter)[0], signal.SIGKILL)
        self.check_both(editor, "serving killed")
        os.kill(starter, signal.SIGKILL)
        wait_until(lambda: self.holder("http") not in (None, starter) and self.holder("remote"), "another starter")
        self.check_both(editor, "rest killed")
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        wait_until(lambda: self.programs() == [], "its end")
        self.assertFalse((self.runtime / "remote.sock").exists())

    def test_http_takes_the_engine_over_and_hands_it_on(self):
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        alone = self.holder("remote")
        self.assertIsNone(self.holder("http"))
        self.open_http()
        self.check_both(editor, "taken over")
        self.assertNotEqual(self.holder("remote"), alone)
        self.assertEqual(self.run_efimd("http", "--stop").returncode, 0)
        self.assertIsNone(self.holder("http"))
        self.assertEqual(self.programs(), [self.holder("remote")])
        self.assertEqual(self.health(), 0)
        self.recover(editor, "handed on")

    def test_one_that_serves_by_http_learns_of_an_engine_when_the_next_daemon_starts(self):
        self.open_http(engine=False)
        before = self.holder("http")
        self.assertIsNone(self.holder("remote"))
        self.configure()
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        self.check_both(editor, "learned")
        self.assertEqual(self.holder("http"), before)

    def test_http_that_starts_the_daemon_is_answered(self):
        self.open_http()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        self.addCleanup(connection.close)
        token = self.token()
        end = time.monotonic() + 120
        while time.monotonic() < end:
            connection.request("POST", "/infill", json.dumps({"input_prefix": "def f(n):\n    return ", "input_suffix": "\n", "prompt": ""}),
                               {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 503:  # the model loads
                break
        self.assertEqual((answer.status, json.loads(body)["content"]), (200, kRemoteText.rstrip("\n")))


class Enabled(Doors):
    enable = True

    def test_the_daemons_start_starts_one_for_both(self):
        self.port = ports()[-1]
        self.configure()
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "elsewhere")
        if self.holder("http") is None:
            self.skipTest("the port is not free")
        self.check_both(editor, "enabled")


    def test_another_port_is_served_by_itself(self):
        self.open_http(engine=False)
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "engine")
        before, starter = self.port, self.holder("http")
        for self.port in (port for port in ports() if port != before):
            with socket.socket() as free, contextlib.suppress(OSError):
                free.bind(("127.0.0.1", self.port))
                break
        self.configure(engine=False)
        wait_until(lambda: self.run_efimd("status") and self.health() == 200, "the other port")
        self.assertEqual(self.holder("http"), starter)
        self.assertEqual(self.ask(editor)[1]["source"], "engine")


class BadKey(Doors):
    def test_a_key_that_is_refused_closes_the_engines_door_alone(self):
        key = self.folder / "key"
        key.write_text("sesame\n")
        key.chmod(0o644)
        self.more = f'key_file = "{key}"'
        self.open_http()
        editor = self.start()
        self.assertEqual(self.ask(editor)[1]["source"], "engine")
        self.assertEqual(self.health(), 200)
        self.assertIsNone(self.holder("remote"))

    def test_doctor_says_what_is_wrong_with_the_key_and_what_to_do(self):
        key = self.folder / "key"
        self.more = f'key_file = "{key}"'
        self.configure()
        for text, mode, what, remedy in ((None, 0, "No such file", "write the key into it"), ("sesame\n", 0o644, "others may read", "chmod 600"),
                                         ("\n", 0o600, "holds no key", "a key is one line")):
            if text is not None:
                key.write_text(text)
                key.chmod(mode)
            done = self.run_efimd("doctor", "--json")
            self.assertEqual(done.returncode, 1)
            found = next(each for each in json.loads(done.stdout)["findings"] if each["subject"] == "elsewhere")
            self.assertEqual(found["level"], "wrong")
            self.assertIn(f"engine.key_file: {key}", found["what"])
            self.assertIn(what, found["what"])
            self.assertIn(remedy, found["remedy"])
        key.write_text("sesame\n")
        self.assertEqual(self.run_efimd("doctor").returncode, 0)


if __name__ == "__main__":
    unittest.main()

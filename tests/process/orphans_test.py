"""A bridge ends with its editor, whatever the daemon does and whoever else holds its stdin open."""

import errno
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

from user import UserTest, kEfimd, poll
from lsp_peer import LspError, framed

kAtOnce = 20
kEndS = 60  # the bridge's own limit is 2 s; a busy machine may need more

# Starts a bridge, says what it is told to say, hands its own process over and stays until it is killed. Somebody else holds the
# bridge's stdin open.
kEditor = """
import os, subprocess, sys, time
bridge = subprocess.Popen([sys.argv[1], "lsp"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
holder = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          pass_fds=[bridge.stdin.fileno()])
bridge.stdin.write(sys.argv[2].encode().replace(b"PID", b"%d" % os.getpid()))
bridge.stdin.flush()
print(bridge.pid, holder.pid, flush=True)
time.sleep(600)
"""


def is_gone(pid):
    """Also of one that nobody has waited for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class OrphansTest(UserTest):
    def start(self, message):
        editor = subprocess.Popen([sys.executable, "-c", kEditor, kEfimd, message], env=self.environment,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(editor.stdout.close)
        self.addCleanup(editor.wait)
        self.addCleanup(editor.kill)
        bridge, holder = map(int, editor.stdout.readline().split())
        self.addCleanup(lambda: is_gone(holder) or os.kill(holder, signal.SIGKILL))
        return editor, bridge

    def test_a_bridge_ends_with_the_process_that_started_it(self):
        message = framed({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}}})
        editor, bridge = self.start(message.decode())
        # One that has not come to look at its parent by the time of its end has another parent by then.
        poll(lambda: (status := self.status()) and status["sessions"], "the bridge has brought its editor to the daemon", kEndS)
        editor.kill()
        poll(lambda: is_gone(bridge), "the bridge ends with its parent", kEndS)

    def test_a_bridge_ends_while_its_daemon_hangs(self):
        pid = self.connected_daemon()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        bridge = subprocess.Popen([kEfimd, "lsp"], env=self.environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        bridge.stdin.write(framed({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "processId": os.getpid(), "capabilities": {}}}))
        bridge.stdin.flush()
        bridge.stdin.close()
        self.assertEqual(bridge.wait(kEndS), 0)

    def fill_queue(self):
        """The listener's, of a daemon that is stopped."""
        waiting = []
        for _ in range(200):
            peer = socket.socket(socket.AF_UNIX)
            self.addCleanup(peer.close)
            peer.setblocking(False)
            waiting.append(peer)
            if peer.connect_ex(str(self.runtime / "daemon.sock")) == errno.EAGAIN:
                break
        self.assertLess(len(waiting), 200, "the queue is never full")

    def test_an_editor_is_told_at_once_that_its_daemon_hangs(self):
        pid = self.connected_daemon()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        self.fill_queue()
        editor = self.editor()
        with self.assertRaisesRegex(LspError, "takes no connections"):
            editor.initialize()
        editor.child.stdin.close()
        self.assertEqual(editor.child.stderr.read().count(b"takes no connections"), 1, "it was looked for again and again")

    def test_an_editor_is_told_of_a_daemon_that_takes_its_connection_and_hangs(self):
        pid = self.connected_daemon()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        editor = self.editor()
        with self.assertRaisesRegex(LspError, rf"process {pid}\) does not answer"):
            editor.initialize()
        editor.child.stdin.close()
        self.assertEqual(editor.child.stderr.read().count(b"does not answer"), 1, "it was looked for again and again")

    def test_many_bridges_end_whatever_the_daemon_does(self):
        """EFIMD_BRIDGES of them, while the daemon is stopped and its queue is full: their stdin ends, or their parent does."""
        count = int(os.environ.get("EFIMD_BRIDGES", "20"))
        pid = self.connected_daemon()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        self.fill_queue()
        message = framed({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}}})
        slowest = 0.0
        for begin in range(0, count, kAtOnce):
            started = [self.start_in_shell(message) for _ in range(min(kAtOnce, count - begin))]
            # As above: its watch, a second thread, must have looked at its parent before that ends.
            for _, bridge in started:
                poll(lambda bridge=bridge: len(list(pathlib.Path(f"/proc/{bridge}/task").iterdir())) > 1, "a bridge watches its ends")
            begun = time.monotonic()
            for number, (shell, _) in enumerate(started):
                if number % 2 == 0:
                    shell.stdin.close()
                else:
                    shell.kill()
            for _, bridge in started:
                poll(lambda bridge=bridge: is_gone(bridge), "a bridge ends", kEndS)
                slowest = max(slowest, time.monotonic() - begun)
            for shell, _ in started:
                shell.kill()
                shell.wait()
                shell.stdin.close()
                shell.stdout.close()
        print(f"{count} of {count} bridges ended, the slowest after {slowest:.2f} s")

    def start_in_shell(self, message):
        """A bridge whose parent is not its editor's end of the pipe."""
        shell = subprocess.Popen(["/bin/sh", "-c", 'exec 3<&0; "$0" lsp <&3 3<&- >/dev/null 2>&1 & exec 3<&- </dev/null; echo $!; wait', kEfimd],
                                 env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        bridge = int(shell.stdout.readline())
        shell.stdin.write(message)
        shell.stdin.flush()
        return shell, bridge

    def connected_daemon(self):
        self.ready_editor().ask("efim/version", None)
        return self.daemon_pid()


if __name__ == "__main__":
    unittest.main()

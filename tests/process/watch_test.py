"""`efimd status --watch` in a terminal: it gives the terminal back when it is stopped or ends, and writes no orders to one that knows none."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
import unittest

from user import UserTest, kPatienceS

kShows, kLeaves = b"\033[?1049h", b"\033[?1049l"


class WatchTest(UserTest):
    def watch(self, terminal):
        """Starts it; no daemon runs, and it waits for one."""
        self.ours, theirs = pty.openpty()
        self.addCleanup(os.close, self.ours)
        self.seen = b""
        self.child = subprocess.Popen([os.environ["EFIMD_BINARY"], "status", "--watch"], env=self.environment | {"TERM": terminal}, stdin=theirs,
                                      stdout=theirs, stderr=theirs, start_new_session=True)
        self.addCleanup(self.child.wait)
        self.addCleanup(self.child.kill)
        os.close(theirs)

    def until(self, what, holds):
        deadline = time.monotonic() + kPatienceS
        while not holds():
            self.assertLess(time.monotonic(), deadline, f"{what} did not come: {self.seen}")
            if select.select([self.ours], [], [], 0.05)[0]:
                self.seen += os.read(self.ours, 65536)

    def test_a_terminal_that_knows_no_orders_gets_reports(self):
        self.watch("dumb")
        self.until("a report", lambda: self.seen.count(b"no daemon is running") >= 2)
        self.assertNotIn(b"\033", self.seen)

    def test_stopped_it_gives_the_terminal_back_and_takes_it_again(self):
        self.watch("xterm")
        self.until("the view", lambda: b"no daemon is running" in self.seen)
        before = termios.tcgetattr(self.ours)
        self.assertFalse(before[3] & termios.ICANON)
        self.child.send_signal(signal.SIGTSTP)
        self.until("its stop", lambda: os.waitid(os.P_PID, self.child.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT))
        self.until("the terminal", lambda: self.seen.endswith(kLeaves))
        self.assertTrue(termios.tcgetattr(self.ours)[3] & termios.ICANON)
        self.child.send_signal(signal.SIGCONT)
        self.until("the view again", lambda: kShows in self.seen.rpartition(kLeaves)[2])
        os.write(self.ours, b"q")
        self.assertEqual(self.child.wait(kPatienceS), 0)
        self.until("its end", lambda: self.seen.endswith(kLeaves))


if __name__ == "__main__":
    sys.exit(unittest.main())

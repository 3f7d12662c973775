"""A user of one's own for each test: folders, a daemon and editors that nothing else knows, and an end to all of them."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "tests" / "support"))
sys.path.insert(0, str(kRoot / "tests" / "process"))
from lsp_peer import Editor, LspPeer, kPatienceS  # noqa: E402
from polling import poll  # noqa: E402,F401  for the tests
from private_daemon import kSmallModel, kSmallModelF16, private_daemon  # noqa: E402,F401

kEfimd = os.environ["EFIMD_BINARY"]  # set by ctest
kModel = kRoot / "models" / "efim-boot.gguf"  # the bundled one
# The longest that one editor may hold another one up. On a quiet machine it is 50 ms; here others compile meanwhile.
kDelayMs = float(os.environ.get("EFIMD_DELAY_MS", "1000"))
kUri = "file:///project/fibonacci.py"
# What stands here makes the bundled model suggest something at kCursor.
kText = "def fibonacci(n):\n    if n < 2:\n        return n\n    return fibonacci(n - 1) + \n"
kCursor = (3, 30)


class UserTest(unittest.TestCase):
    """self.environment, self.folder and whatever a test starts through this class."""

    config = ""
    model = kSmallModel  # None: the bundled one, as users have it

    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.environment = stack.enter_context(private_daemon(kEfimd, self.config, self.model))
        self.folder = pathlib.Path(self.environment["HOME"])
        self.runtime = pathlib.Path(self.environment["EFIMD_RUNTIME_DIR"])
        self.addCleanup(self.kill_daemon)

    def run_efimd(self, *arguments, cwd=None, **environment):
        """A finished command."""
        return subprocess.run([kEfimd, *map(str, arguments)], env=self.environment | environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              cwd=cwd, timeout=kPatienceS, check=False)

    def editor(self, **environment):
        editor = Editor([kEfimd, "lsp"], self.environment | environment)
        self.addCleanup(editor.close)
        return editor

    def ready_editor(self, text=kText, **efim):
        """Initialized, with kUri open."""
        editor = self.editor()
        editor.initialize(**efim)
        editor.open(kUri, text)
        return editor

    def connection(self):
        """To the running daemon's socket, without a bridge."""
        peer = LspPeer.connect(self.runtime / "daemon.sock")
        self.addCleanup(peer.connection.close)
        return peer

    def status(self):
        """Of the running daemon, None when none runs."""
        done = self.run_efimd("status", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def daemon_pid(self):
        return self.status()["pid"]

    def kill_daemon(self):
        """kill -9, as the kernel does when memory runs out; the pid, None when none runs."""
        lock = self.runtime / "daemon.lock"
        if not lock.is_file() or not (pid := lock.read_text().strip()):
            return None
        if pathlib.Path(f"/proc/{pid}/cmdline").exists() and b"serve" in pathlib.Path(
                f"/proc/{pid}/cmdline").read_bytes():
            os.kill(int(pid), signal.SIGKILL)
            return int(pid)
        return None

    @contextlib.contextmanager
    def asking_meanwhile(self):
        """Another client asks the daemon again and again. `waited` is a list that afterwards has the longest wait, in ms."""
        probe = subprocess.Popen([sys.executable, kRoot / "tests" / "support" / "latency_probe.py", self.runtime / "daemon.sock"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(probe.kill)
        self.assertEqual(probe.stdout.readline(), "asking\n")
        waited = []
        yield waited
        waited.append(float(probe.communicate("", kPatienceS)[0].split()[0]))

    def assert_alive(self, pid):
        self.assertEqual(self.daemon_pid(), pid, "the daemon died")

    def assert_nothing_shown(self, editor):
        shown = [message for message in editor.heard
                 if message["method"] in ("window/showMessage", "window/showMessageRequest")]
        self.assertEqual(shown, [])

    def assert_fails(self, done, *parts, status=1):
        """A command that failed with a reason that names `parts`."""
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        for part in parts:
            self.assertIn(str(part), done.stderr)

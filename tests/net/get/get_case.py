"""A home and a hub for each test of efimd model get (process_test.py, edges_test.py)."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from hub_server import Hub, Repository

kRoot = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(kRoot / "tests" / "support"))
from private_daemon import small_model  # noqa: E402

kEfimd = pathlib.Path(os.environ["EFIMD_BINARY"])  # set by ctest
kModel = small_model(kEfimd).read_bytes()
kName = "small/coder-GGUF"
kFile = "coder-Q8_0.gguf"
kPatienceS = 120


class GetTest(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.home = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="efimd-get-")))
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.repository = self.hub.repositories[kName] = Repository({"README.md": b"# A model\n", kFile: kModel})
        dropped = ("EFIMD_", "XDG_", "HF_", "HUGGING", "LLAMA_", "MODEL_ENDPOINT", "SSL_CERT_", "CURL_CA_")
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(dropped) and "proxy" not in name.lower()}
        self.environment |= {"HOME": str(self.home), "HF_ENDPOINT": self.hub.endpoint,
                             "EFIMD_RUNTIME_DIR": str(self.home / "run"),
                             "EFIMD_STATE_DIR": str(self.home / "state")}

    @property
    def cache(self):
        return self.home / ".cache/huggingface/hub"

    @property
    def folder(self):
        return self.cache / "models--small--coder-GGUF"

    def command(self, *arguments):
        return [str(kEfimd), "model", "get", "--no-speed", *arguments]

    def run_get(self, *arguments, limit=None, **environment):
        return subprocess.run(self.command(*(arguments or [kName])), env=self.environment | environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=kPatienceS,
                              preexec_fn=limit, check=False)

    def get(self, *arguments, **environment):
        """The path of what was loaded."""
        done = self.run_get(*arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(done.stdout.strip())

    def refused(self, *arguments, limit=None, **environment):
        """What is said of it; nothing half-done has a name."""
        done = self.run_get(*arguments, limit=limit, **environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(list(self.home.rglob("*.gguf")), [])
        return done.stderr

    def left(self):
        """Files of content, whole or not."""
        return sorted(path.name for path in self.cache.rglob("blobs/*"))

    def small_disk(self, size):
        cache = self.home / "small"
        cache.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", cache], capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("this machine lets nobody mount: " + made.stderr.decode())
        self.addCleanup(subprocess.run, ["umount", cache], check=True)
        return cache

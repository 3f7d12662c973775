"""What the tests of training/ share: its commands as a user runs them, and a tiny corpus."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
EFIMD = os.environ.get("EFIMD_BINARY", "")
BENCH = os.environ.get("EFIMD_BENCH_BINARY", "")
# The long run trains a thousand steps: on one core without bf16 a quarter of an hour and more.
PATIENCE_S = 3600 if os.environ.get("EFIMD_TRAINING") == "long" else 900


def training(*words, limit=None, good=True):
    """Runs `python3 -m training WORDS`; `limit` is called in the child. Returns what ended."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run([sys.executable, "-m", "training", *map(str, words)], cwd=ROOT, env=environment, capture_output=True, text=True,
                         preexec_fn=limit, check=False, timeout=PATIENCE_S)
    if good and ran.returncode != 0:
        raise AssertionError(f"training {' '.join(map(str, words))}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
    return ran


class TrainingTest(unittest.TestCase):
    """Each test has a folder of its own; the class has one with a corpus, a vocabulary and samples, made once."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="efim-training-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.shared))

    def refused(self, *words, limit=None) -> str:
        """What the command says where it fails, which is one line, and no traceback."""
        ran = training(*words, limit=limit, good=False)
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        self.assertNotIn("Traceback", ran.stderr)
        return ran.stderr.strip().split("\n")[-1]

    @classmethod
    def make_corpus(cls) -> pathlib.Path:
        """Of this project's own rooms."""
        corpus = cls.shared / "corpus"
        if not corpus.exists():
            lines = [f"folder {ROOT / room} MIT {split}" for room, split in (
                ("daemon", "train"), ("engine", "train"), ("lsp", "validation"), ("cache_store", "test"), ("scripts", "test"))]
            (cls.shared / "packages.txt").write_text("\n".join(lines))
            training("corpus", "--list", cls.shared / "packages.txt", "--out", corpus)
        return corpus

    @classmethod
    def make_vocabulary(cls) -> pathlib.Path:
        path = cls.shared / "vocabulary.model"
        if not path.exists():
            training("tokenizer", "--corpus", cls.make_corpus(), "--size", "1024", "--out", path)
        return path

    @classmethod
    def make_samples(cls, name="samples", *more, context=64) -> pathlib.Path:
        path = cls.shared / name
        if not path.exists():
            training("samples", "--corpus", cls.make_corpus(), "--tokenizer", cls.make_vocabulary(), "--context", context,
                     "--rows-max", "200", "--out", path, *more)
        return path

    @classmethod
    def model_options(cls, steps: int, *more) -> list:
        return ["--samples", cls.make_samples(), "--vocabulary", "1024", "--width", "64", "--layers", "2", "--heads", "2",
                "--feed-forward", "96", "--batch", "4", "--microbatch", "2", "--threads", "1", "--device", "cpu", "--steps", steps, *more]


def records(path: pathlib.Path) -> list:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]

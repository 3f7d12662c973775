"""What the tests of training/ share: its commands as a user runs them, and a tiny corpus."""
import atexit
import functools
import importlib.util
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/support")]
EFIMD = os.environ.get("EFIMD_BINARY", "")
BENCH = os.environ.get("EFIMD_BENCH_BINARY", "")
# What a command's environment has besides: one thread, and no GPU. Of the tests' own threads a fork has only the one that forked.
ALONE = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
os.environ["OMP_NUM_THREADS"] = "1"
# The long run trains a thousand steps: on one core without bf16 a quarter of an hour and more.
PATIENCE_S = 3600 if os.environ.get("EFIMD_TRAINING") == "long" else 900


# Commands that import PyTorch, which takes longer than all they do in most tests.
WITH_PYTORCH = ("train", "finetune", "export", "take", "gpu")


def training(*words, limit=None, good=True, program=False):
    """Runs `python3 -m training WORDS`; `limit` is called in the child. Returns what ended.

    A command that imports PyTorch runs in a fork of the test, which has imported it; as a program of its own if `program` says so.
    """
    words = [str(word) for word in words]
    if words[0] in WITH_PYTORCH and not program:
        ran = forked(words, limit)
    else:
        ran = subprocess.run([sys.executable, "-m", "training", *words], cwd=ROOT, env={**os.environ, **ALONE}, capture_output=True, text=True,
                             preexec_fn=limit, check=False, timeout=PATIENCE_S)
    if good and ran.returncode != 0:
        raise AssertionError(f"training {' '.join(words)}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
    return ran


def forked(words: list, limit):
    for name in ("torch", "matplotlib.pyplot"):  # in the parent, once
        if importlib.util.find_spec(name.split(".")[0]):
            importlib.import_module(name)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as error:
        child = os.fork()
        if child == 0:
            os._exit(run_command(words, limit, out, error))
        with open(os.pidfd_open(child), "rb", buffering=0) as end:
            if not select.select([end], [], [], PATIENCE_S)[0]:
                os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, error):
            file.seek(0)
            texts.append(file.read())
    return subprocess.CompletedProcess(words, status, *texts)


def run_command(words: list, limit, out, error) -> int:
    """The command in this process, which ends after it."""
    sys.stdout, sys.stderr = out, error
    try:
        if limit:
            limit()
        os.chdir(ROOT)
        os.environ |= ALONE
        sys.argv = ["training", *words]
        from training import __main__ as command
        return command.main()
    except SystemExit as ended:  # argparse
        return ended.code
    except BaseException:  # as Python's own end of a program
        traceback.print_exc()
        return 1
    finally:
        out.flush()
        error.flush()


@functools.cache
def shared_folder() -> pathlib.Path:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="efim-training-"))
    atexit.register(shutil.rmtree, folder)
    return folder


class TrainingTest(unittest.TestCase):
    """Each test has a folder of its own; all of a program have one with a corpus, a vocabulary and samples, made once."""

    @classmethod
    def setUpClass(cls):
        cls.shared = shared_folder()

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

"""Training: it learns, resumes exactly, survives a full disk, and refuses what it cannot use."""
import io
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import unittest
import unittest.mock

import support
from support import training

import torch

from training import checkpoint, progress, safetensors
from training.model import Model, Shape
from training.samples import Rows


class Train(support.TrainingTest):
    def train(self, out: str, steps: int, *more, **options):
        return training("train", *self.model_options(steps, *more), "--out", self.folder / out, **options)

    def state(self, out: str) -> dict:
        return checkpoint.load(self.folder / out / "checkpoint.safetensors")

    def assert_same_weights(self, a: dict, b: dict):
        for name, weight in a["weights"].items():
            self.assertTrue(torch.equal(weight, b["weights"][name]), name)

    def test_the_loss_falls_and_is_plotted(self):
        validation = self.make_samples("validation", "--split", "validation", "--fragment-share", "0")
        self.train("run", 60, "--validation", validation, "--warmup", "5")
        losses = self.state("run")["losses"]
        self.assertLess(sum(losses[-5:]) / 5, losses[0] - 1)
        self.assertLess(self.state("run")["validations"][-1][1], losses[0] - 0.8)
        self.assertTrue((self.folder / "run/loss.png").read_bytes().startswith(b"\x89PNG"))

    def test_the_first_tokens_behind_middle_weigh_more(self):
        self.train("run", 1, "--opening-weight", "5", "--precision", "f32")
        rows = Rows(self.make_samples())
        batch = rows.batch(0, 4)
        model = Model(Shape(vocabulary=1024, width=64, layers=2, heads=2, kv_heads=1, feed_forward=96, context=rows.context))
        model.draw(1)
        weights = 1 + 5 * torch.from_numpy(rows.opening_shares(batch))
        losses = model.losses(torch.from_numpy(batch)).detach()
        self.assertAlmostEqual(self.state("run")["losses"][0], float((losses * weights).sum() / weights.sum()), places=4)
        self.assertGreater(float(weights.max()), 5)
        self.assertIn("--opening-weight is at least 0", self.refused("train", *self.model_options(1), "--opening-weight", "-1",
                                                                     "--out", self.folder / "other"))

    @unittest.skipIf(hasattr(torch, "compile"), "PyTorch 2 compiles")
    def test_compiling_needs_a_later_pytorch(self):
        self.assertIn("PyTorch 2 does", self.refused("train", *self.model_options(1), "--compile", "--out", self.folder / "run"))

    def test_a_run_in_parts_gives_the_weights_of_one_run(self):
        whole = ("--warmup", "2")
        self.train("at-once", 6, *whole)
        for _ in range(3):  # a step each, for the budget is looked at before every one
            self.train("in-parts", 6, *whole, "--budget", "0.000001")
        self.assertLess(self.state("in-parts")["step"], 6)
        self.train("in-parts", 6, *whole)
        self.assert_same_weights(self.state("at-once"), self.state("in-parts"))
        self.assertEqual(self.state("at-once")["losses"], self.state("in-parts")["losses"])

    def test_a_log_says_after_a_second_that_it_trains_and_then_every_half_minute(self):
        log = io.StringIO()
        with unittest.mock.patch("sys.stderr", log), unittest.mock.patch("time.monotonic") as now:
            now.return_value = 0
            line = progress.ProgressLine(100, 64)
            for step in range(1, 71):
                now.return_value = step
                line.step(step, 1.0, None)
        self.assertEqual([words.split()[1] for words in log.getvalue().splitlines()], ["1", "31", "61"])

    def test_ctrl_c_saves_and_the_same_command_goes_on(self):
        command = [sys.executable, "-m", "training", "train", *map(str, self.model_options(100_000)), "--out", str(self.folder / "run")]
        with subprocess.Popen(command, cwd=support.ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1"}) as child:
            # Its first line of progress says that it trains.
            self.assertIn("step", child.stderr.readline())
            child.send_signal(signal.SIGINT)
            out, _ = child.communicate(timeout=300)
        self.assertEqual(child.returncode, 0)
        self.assertIn("stopped at step", out)
        self.assertGreater(self.state("run")["step"], 0)

    def test_a_full_disk_keeps_the_last_checkpoint_and_the_run_goes_on_from_it(self):
        self.train("run", 4, "--budget", "0.000001")
        before = self.state("run")

        def full() -> None:  # a file may grow no larger than half of the checkpoint
            size = (self.folder / "run/checkpoint.safetensors").stat().st_size // 2
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        said = self.refused("train", *self.model_options(4), "--out", self.folder / "run", limit=full)
        self.assertIn("cannot be written", said)
        self.assertIn("free some space", said)
        self.assert_same_weights(before, self.state("run"))
        self.assertEqual([path.name for path in (self.folder / "run").glob(".*")], [])
        self.train("run", 4)
        self.train("at-once", 4)
        self.assert_same_weights(self.state("at-once"), self.state("run"))

    def test_a_run_goes_on_from_another_ones_weights(self):
        self.train("first", 30, "--decay", "0")
        self.train("second", 3, "--from", self.folder / "first/checkpoint.safetensors", "--warmup", "0")
        self.assertLess(self.state("second")["losses"][0], self.state("first")["losses"][0] - 0.5)

    def test_without_decay_more_steps_may_be_given_later_with_it_not(self):
        self.train("constant", 2, "--decay", "0")
        self.train("constant", 3, "--decay", "0")
        self.assertEqual(self.state("constant")["step"], 3)
        self.train("falling", 2)
        self.assertIn("is of a run with other options", self.refused("train", *self.model_options(3), "--out", self.folder / "falling"))

    def test_checkpoints_of_others_are_refused_and_run_no_code(self):
        trap = self.folder / "trap"

        class Trap:
            def __reduce__(self):
                return (pathlib.Path.touch, (trap,))
        (self.folder / "text.safetensors").write_text("nothing")
        torch.save({"weights": Trap()}, self.folder / "trap.safetensors")
        safetensors.write(self.folder / "other.safetensors", {"a": torch.zeros(3)}, {"format": "another"})
        (self.folder / "empty.safetensors").write_bytes(b"")
        for name in ("text.safetensors", "trap.safetensors", "other.safetensors", "empty.safetensors"):
            with self.subTest(name=name):
                said = self.refused("train", *self.model_options(1), "--from", self.folder / name, "--out", self.folder / "run")
                self.assertIn("is no checkpoint", said)
        self.assertFalse(trap.exists())
        self.assertIn("is missing", self.refused("train", *self.model_options(1), "--from", self.folder / "none.safetensors",
                                                 "--out", self.folder / "run"))

    def test_a_checkpoint_of_another_shape_is_refused(self):
        self.train("run", 1)
        options = [str(word) for word in self.model_options(1)]
        options[options.index("--layers") + 1] = "1"
        self.assertIn("another shape or architecture", self.refused("train", *options, "--out", self.folder / "run"))

    @unittest.skipUnless(torch.cuda.is_available(), "PyTorch finds no GPU")
    def test_on_a_gpu_bf16_learns_as_on_the_cpu(self):
        for device in ("cpu", "cuda"):
            options = [str(word) for word in self.model_options(30, "--warmup", "5")]
            options[options.index("--device") + 1] = device
            # training() hides GPUs.
            ran = subprocess.run([sys.executable, "-m", "training", "train", *options, "--out", str(self.folder / device)],
                                 cwd=support.ROOT, capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 0, ran.stderr)
        on_cpu, on_gpu = (self.state(device)["losses"] for device in ("cpu", "cuda"))
        self.assertLess(on_gpu[-1], on_gpu[0] - 0.5)
        for a, b in zip(on_cpu, on_gpu):
            self.assertAlmostEqual(a, b, delta=0.1)

    def test_a_gpu_that_is_not_there_is_named(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        options = [str(word) for word in self.model_options(1)]
        options[options.index("--device") + 1] = "cuda"
        self.assertIn("there is no GPU that PyTorch can use", self.refused("train", *options, "--out", self.folder / "run"))

    def test_samples_that_do_not_fit_are_refused(self):
        options = [str(word) for word in self.model_options(1)]
        small = list(options)
        small[small.index("--vocabulary") + 1] = "512"
        self.assertIn("has tokens that the model has not", self.refused("train", *small, "--out", self.folder / "run"))
        of_others = self.folder / "of-others"
        of_others.mkdir()
        (of_others / "samples.json").write_text(json.dumps({"rows": 1, "context": 64, "fragment_share": 0, "bits": 16, "middle": 5, "end": 9}))
        (of_others / "rows.bin").write_bytes(b"\xff\x7f" * 65)
        self.assertIn("make these samples with the tokenizer of --samples", self.refused(
            "train", *options, "--validation", of_others, "--out", self.folder / "run"))
        for wrong in ("--heads", "--kv-heads"):
            self.assertIn("are at least 1", self.refused("train", *options, wrong, "0", "--out", self.folder / "run"))
        damaged = self.folder / "damaged"
        damaged.mkdir()
        (damaged / "samples.json").write_text(json.dumps({"rows": 5, "context": 64, "fragment_share": 0.5, "bits": 16}))
        (damaged / "rows.bin").write_bytes(b"\0" * 100)
        options[options.index("--samples") + 1] = str(damaged)
        self.assertIn("its samples are damaged", self.refused("train", *options, "--out", self.folder / "run"))
        options[options.index("--samples") + 1] = str(self.folder / "none")
        self.assertIn("make them first", self.refused("train", *options, "--out", self.folder / "run"))


if __name__ == "__main__":
    unittest.main()

"""The chain for a lent card, on the CPU with a tiny model: shards, a plan, training that is cut off, resumed, given back in pieces."""
import json
import shutil
import unittest
import unittest.mock

import support
from support import training

TINY = ["--width", "32", "--layers", "1", "--heads", "2", "--kv-heads", "1", "--feed-forward", "48", "--batch", "4", "--microbatch", "2",
        "--threads", "1", "--device", "cpu", "--precision", "f32"]


class Shards(support.TrainingTest):
    def make_shards(self, *more):
        out = self.folder / "shards"
        said = training("shards", "--samples", self.make_samples(), "--out", out, *more).stdout
        return out, said

    def test_shards_hold_the_rows_of_the_samples_in_two_thirds_of_their_bytes(self):
        out, said = self.make_shards()
        self.assertIn("200 rows read and right", said)
        size = sum(path.stat().st_size for path in out.glob("shard-*"))
        self.assertLess(size, 0.66 * (self.make_samples() / "rows.bin").stat().st_size)

    def test_shards_are_bounded_and_each_is_told(self):
        with unittest.mock.patch("training.shards.BLOCK_TOKENS", 65 * 40):
            from training import shards

            facts = shards.write(self.make_samples(), self.folder / "s", 6000, 100, lambda shard: None)
        self.assertGreater(len(facts["shards"]), 1)
        for shard in facts["shards"]:
            self.assertLessEqual((self.folder / "s" / shard["file"]).stat().st_size, 6000)
        self.assertEqual(sum(shard["rows"] for shard in facts["shards"]), 200)
        self.assertIn("200 rows read and right", shards.check(self.folder / "s", self.make_samples()))

    def test_what_else_stands_in_the_folder_stays(self):
        out, _ = self.make_shards()
        (out / "notes.txt").write_text("mine")
        (out / "shard-007.xz").write_text("of a former, longer list")
        self.make_shards()
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["notes.txt", "shard-000.xz", "shards.json"])

    def test_every_row_of_a_shard_is_visited_once_an_epoch_and_shards_follow_each_other(self):
        with unittest.mock.patch("training.shards.BLOCK_TOKENS", 65 * 50):
            from training import shards

            shards.write(self.make_samples(), self.folder / "s", 7000, 100, lambda shard: None)
        rows = shards.ShardRows(self.folder / "s", epochs=2)
        known = [sorted(map(tuple, rows.load(number).tolist())) for number in range(len(rows.shards))]
        step = 0
        for shard, expected in zip(rows.shards, known):
            seen = []
            for _ in range(shard["rows"] * 2 // 10):
                seen += map(tuple, rows.batch(step, 10).tolist())
                step += 1
            self.assertEqual(sorted(seen), sorted(expected * 2))
        self.assertEqual(step, rows.steps(10))

    def test_damaged_shards_are_refused(self):
        out, _ = self.make_shards()
        file = out / "shard-000.xz"
        whole = file.read_bytes()
        for content, what in ((whole[:-30], "is damaged"), (whole[:100] + b"xx" + whole[102:], "is damaged"), (None, "is missing")):
            with self.subTest(what=what):
                file.unlink(missing_ok=True)
                if content is not None:
                    file.write_bytes(content)
                self.assertIn(what, self.refused("gpu", "--shards", out, "--out", self.folder / "run", *TINY))
        (out / "shards.json").write_text("{")
        self.assertIn("is damaged", self.refused("shards", "--out", out, "--check"))


class Card(support.TrainingTest):
    def train(self, shards, out, *more):
        ran = training("gpu", "--shards", shards, "--out", out, "--total-seconds", "400", *TINY, *more, good=False)
        self.assertIn(ran.returncode, (0, 3), ran.stderr)
        return ran

    def test_a_run_that_is_cut_off_and_carried_away_ends_as_one_that_is_not(self):
        from training import shards as writer

        shards = self.folder / "shards"
        with unittest.mock.patch("training.shards.BLOCK_TOKENS", 65 * 100):
            writer.write(self.make_samples(), shards, 11000, 2, lambda shard: None)
        speed = 4 * 64 * 50.5 / 355  # fifty steps in what is left of 400 s
        one, two, again = (self.folder / name for name in ("one", "two", "again"))
        ran = self.train(shards, one, "--seconds", "400", "--speed", speed)
        self.assertIn("done at step 50 of 50", ran.stdout)
        self.assertIn("fewer than 800 M tokens", ran.stdout)
        # The other is cut off by a shard that was not carried; on another machine it goes on from pieces.
        hidden = (shards / "shard-001.xz").rename(shards / "hidden")
        ran = self.train(shards, two, "--seconds", "400", "--speed", speed)
        self.assertEqual(ran.returncode, 3)
        self.assertIn("wants shard-001.xz at step 25 of 50", ran.stdout)
        training("pieces", "--split", two / "checkpoint.safetensors", "--out", self.folder / "pieces")
        again.mkdir()
        training("pieces", "--join", self.folder / "pieces", "--out", again / "checkpoint.safetensors")
        shutil.copy(two / "plan.json", again)
        hidden.rename(shards / "shard-001.xz")
        ran = self.train(shards, again, "--seconds", "400")
        self.assertIn("done at step 50 of 50 (resumed)", ran.stdout)
        self.assertEqual(self.weights(one), self.weights(again))
        model = self.folder / "tiny.gguf"
        training("export", "--model", again / "weights.safetensors", "--tokenizer", self.make_vocabulary(), "--name", "tiny", "--out", model)
        if support.BENCH:
            said = training("evaluate", "--corpus", self.make_corpus(), "--model", f"tiny={model}", "--cursors", "5", "--kinds", "random",
                            "--bench", support.BENCH, "--out", self.folder / "evaluation").stdout
            self.assertIn("| tiny, EFIM |", said)

    def test_shards_are_visited_in_the_order_that_is_given_and_the_rate_falls_when_the_time_says(self):
        from training import checkpoint, shards as writer

        shards, out = self.folder / "shards", self.folder / "run"
        with unittest.mock.patch("training.shards.BLOCK_TOKENS", 65 * 100):
            writer.write(self.make_samples(), shards, 11000, 2, lambda shard: None)
        out.mkdir()
        (out / "seconds").write_text("0.01")
        hidden = (shards / "shard-001.xz").rename(shards / "hidden")
        ran = self.train(shards, out, "--seconds", "400", "--order", "1,0,0", "--warmup", "2")
        self.assertEqual(ran.returncode, 3)
        self.assertIn("wants shard-001.xz at step 0 of 75", ran.stdout)
        hidden.rename(shards / "shard-001.xz")
        ran = self.train(shards, out, "--seconds", "400", "--order", "1,0,0", "--warmup", "2")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        plan = checkpoint.load(out / "weights.safetensors")["plan"]
        self.assertEqual(plan["steps"], 2)  # no time is left after the first, so the rate falls within one
        self.assertIn("of a run with other options", self.refused("gpu", "--shards", shards, "--out", out, "--seconds", "400", *TINY,
                                                                  "--order", "1,0,0", "--warmup", "3"))
        self.assertIn("names [7]", self.refused("gpu", "--shards", shards, "--out", self.folder / "x", *TINY, "--order", "0,7"))

    def planned(self, steps: int, seconds: float):
        """A run of half a second a step, to its end."""
        from training import gpu
        from training.run import Plan

        run = unittest.mock.Mock(out=self.folder, plan=Plan(steps=steps, warmup=1, decay=0.0), step=0, seconds=0.0)
        with unittest.mock.patch("training.gpu.time.monotonic", lambda: run.seconds):
            fall = gpu.Fall(run, seconds)
            while run.step < run.plan.steps:
                run.step, run.seconds = run.step + 1, run.seconds + 0.5
                fall()
                if run.plan.decay == 0:
                    self.assertEqual(run.plan.rate_at(run.step), run.plan.rate)
        self.assertAlmostEqual(run.plan.decay, 0.3)
        self.assertEqual(run.save.call_count, 1)
        return run

    def test_the_rate_falls_over_the_steps_that_the_rest_of_the_time_has(self):
        run = self.planned(steps=1000, seconds=100)
        self.assertEqual((run.plan.steps, run.seconds), (200, 100))

    def test_the_rate_falls_where_the_rows_end_before_the_time(self):
        self.assertEqual(self.planned(steps=100, seconds=1e6).plan.steps, 100)

    def weights(self, out) -> dict:
        from training import checkpoint

        state = checkpoint.load(out / "checkpoint.safetensors")
        return {name: tensor.numpy().tobytes() for name, tensor in state["weights"].items()}

    def test_the_plan_says_what_fits(self):
        shards = self.folder / "shards"
        training("shards", "--samples", self.make_samples(), "--out", shards)
        said = training("gpu", "--shards", shards, "--out", self.folder / "run", "--plan", "--speed", "600000").stdout
        self.assertIn("600,000 tokens/s", said)
        self.assertIn("in 25 min: ", said)
        self.assertIn("carry more shards", said)
        self.assertFalse((self.folder / "run").exists())

    def test_times_that_are_none_are_refused(self):
        for option in ("--seconds", "--total-seconds"):
            ran = training("gpu", "--shards", self.folder, "--out", self.folder / "run", option, "0", good=False)
            self.assertEqual((ran.returncode, "more than 0" in ran.stderr), (2, True), ran.stderr)

    def test_the_planned_model_has_more_than_100_million_parameters(self):
        from training import gpu
        from training.model import Model, Shape

        large = Shape(vocabulary=16384, width=768, layers=14, heads=12, kv_heads=3, feed_forward=2304)
        self.assertGreater(gpu.parameters_of(large), 100_000_000)
        small = Shape(vocabulary=64, width=32, layers=2, heads=2, kv_heads=1, feed_forward=48)
        self.assertEqual(gpu.parameters_of(small), Model(small).parameter_count())


class Pieces(support.TrainingTest):
    def test_pieces_of_several_calls_make_the_file_and_wrong_ones_are_refused(self):
        from training import pieces
        from training.errors import TrainingError

        file, out = self.folder / "file", self.folder / "pieces"
        file.write_bytes(bytes(range(256)) * 100)
        pieces.split(file, out, 0, 2, piece_bytes=7000)
        self.assertIn("2 of 4 pieces are missing", self.refused("pieces", "--join", out, "--out", self.folder / "joined"))
        pieces.split(file, out, 2, 2, piece_bytes=7000)
        training("pieces", "--join", out, "--out", self.folder / "joined")
        self.assertEqual((self.folder / "joined").read_bytes(), file.read_bytes())
        (out / "piece-001").write_bytes(b"x" * 7000)
        with self.assertRaises(TrainingError):
            pieces.join(out, self.folder / "joined")
        self.assertEqual((self.folder / "joined").read_bytes(), file.read_bytes())
        self.assertIn("is missing", self.refused("pieces", "--join", self.folder / "none", "--out", self.folder / "joined"))


if __name__ == "__main__":
    unittest.main()

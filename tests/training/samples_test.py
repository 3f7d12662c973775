"""Samples: their form, their holes, and that fragments change tokens alone."""
import json
import random
import unittest

import support
from support import training

from training import samples
from training.fragments import Lengths
from training.vocabulary import open_vocabulary

CODE = """class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        return self

    def pop(self):
        if not self.items:
            raise IndexError("empty")
        return self.items.pop()


STACK = Stack()
"""


class Samples(support.TrainingTest):
    def setUp(self):
        super().setUp()
        self.vocabulary = open_vocabulary(self.make_vocabulary())

    def maker(self, fragment_share: float) -> samples.Maker:
        return samples.Maker(self.vocabulary, 512, fragment_share, Lengths(), 1)

    def made(self, fragment_share: float, count: int = 200) -> list:
        record = {"path": "src/stack.py", "package": "p", "text": CODE}
        neighbour = {"path": "src/queue.py", "package": "p", "text": CODE.replace("Stack", "Queue")}
        maker = self.maker(fragment_share)
        return [maker.make(record, neighbour, number, 0) for number in range(count)]

    def parts(self, ids: list) -> dict:
        """Head, before, after and middle of a sample as text; only "text" of one without a hole."""
        words = self.vocabulary
        self.assertEqual(ids[-1], words.end)
        if words.prefix not in ids:
            return {"text": words.decode(ids[:-1])}
        prefix, suffix, middle = (ids.index(mark) for mark in (words.prefix, words.suffix, words.middle))
        self.assertTrue(prefix < suffix < middle)
        return {"head": ids[:prefix], "before": words.decode(ids[prefix + 1:suffix]), "after": words.decode(ids[suffix + 1:middle]),
                "middle": words.decode(ids[middle + 1:-1])}

    def test_the_first_tokens_behind_middle_are_told_from_the_rest(self):
        rows = samples.Rows(self.make_samples())
        batch = rows.batch(0, 8)
        shares = rows.opening_shares(batch)
        self.assertEqual(shares.shape, (8, rows.context))
        self.assertGreater((shares == 1).sum(), 0)
        for row, of_row in zip(batch.tolist(), shares.tolist()):
            behind = None  # tokens after <fim_middle>; None where there is no open one
            for token, target, share in zip(row, row[1:], of_row):
                behind = 0 if token == rows.middle else None if token == rows.end or behind is None else behind
                behind = None if behind is None else behind + 1
                expected = 1 / behind if behind is not None and behind <= samples.OPENING else 0
                self.assertAlmostEqual(share, expected, msg=f"{target} in {row}")

    def test_before_middle_and_after_are_a_piece_of_the_file(self):
        for ids in self.made(0.5):
            parts = self.parts(ids)
            self.assertIn(parts.get("text") or parts["before"] + parts["middle"] + parts["after"], CODE)

    def test_three_of_four_have_a_hole_and_some_have_files_in_front(self):
        made = [self.parts(ids) for ids in self.made(0.0, 1000)]
        holes = [parts for parts in made if "middle" in parts]
        self.assertAlmostEqual(len(holes) / len(made), samples.FIM_SHARE, delta=0.05)
        heads = [parts["head"].count(self.vocabulary.file) for parts in holes]
        self.assertAlmostEqual(sum(count > 0 for count in heads) / len(heads), samples.PATH_SHARE, delta=0.05)
        self.assertAlmostEqual(sum(count > 1 for count in heads) / len(heads), samples.NEIGHBOUR_SHARE, delta=0.05)

    def test_fragments_change_tokens_and_not_text(self):
        whole, broken = self.made(0.0), self.made(1.0)
        self.assertEqual([self.parts(ids) | {"head": None} for ids in whole], [self.parts(ids) | {"head": None} for ids in broken])
        self.assertGreater(sum(map(len, broken)), sum(map(len, whole)))

    def test_middles_look_like_editing(self):
        chance = random.Random(5)
        for _ in range(200):
            rest = samples.line_rest(CODE, chance)
            self.assertNotIn("\n", CODE[rest.begin:rest.end])
            self.assertTrue(rest.end == len(CODE) or CODE[rest.end] == "\n")
            whole = samples.lines(CODE, chance)
            self.assertTrue(whole.begin == 0 or CODE[whole.begin - 1] == "\n")
        blocks = {CODE[hole.begin:hole.end] for hole in (samples.block(CODE, chance) for _ in range(300))}
        self.assertIn("\n        self.items.append(item)\n        return self\n", blocks)

    def test_after_begins_on_the_next_line_as_efimd_has_it_or_at_the_cursors_own(self):
        middles = [parts for parts in map(self.parts, self.made(0.0, 500)) if parts.get("after")]
        # Where a blank line follows, both are true.
        self.assertGreater(sum(parts["middle"].endswith("\n") for parts in middles) / len(middles), 0.3)
        self.assertGreater(sum(parts["after"].startswith("\n") for parts in middles) / len(middles), 0.2)

    def test_the_same_seed_gives_the_same_rows_and_each_begins_with_a_sample(self):
        first, again = self.make_samples("first"), self.make_samples("again")
        self.assertEqual((first / "rows.bin").read_bytes(), (again / "rows.bin").read_bytes())
        self.assertNotEqual((first / "rows.bin").read_bytes(), (self.make_samples("other", "--seed", "2") / "rows.bin").read_bytes())
        rows = samples.Rows(first)
        self.assertEqual(rows.context, 64)
        self.assertLess(rows.highest_token(), 1024)
        self.assertEqual(json.loads((first / "samples.json").read_text())["fragment_lengths"], [1, 200])

    def test_every_row_is_visited_once_an_epoch(self):
        rows = samples.Rows(self.make_samples())
        epoch = [rows._at(number) for number in range(rows.count)]
        self.assertEqual(sorted(epoch), list(range(rows.count)))
        self.assertNotEqual(epoch, [rows._at(rows.count + number) for number in range(rows.count)])

    def test_bad_input_is_refused(self):
        corpus = self.make_corpus()
        out = self.folder / "out"
        (self.folder / "text.model").write_text("no model")
        self.assertIn("is no sentencepiece model",
                      self.refused("samples", "--corpus", corpus, "--tokenizer", self.folder / "text.model", "--out", out))
        self.assertIn("make it first", self.refused("samples", "--corpus", corpus, "--tokenizer", self.folder / "x", "--out", out))
        (self.folder / "train.jsonl").write_text("")
        self.assertIn("too little text", self.refused("samples", "--corpus", self.folder, "--tokenizer", self.make_vocabulary(), "--out", out))
        self.assertEqual(training("samples", "--corpus", corpus, "--tokenizer", "x", "--out", out, "--fragment-share", "2",
                                  good=False).returncode, 2)


if __name__ == "__main__":
    unittest.main()

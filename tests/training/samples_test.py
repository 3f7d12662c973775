"""Samples: their form, their holes, and that fragments change tokens alone."""
import collections
import itertools
import json
import random
import unittest

import support
from support import training

from training import holes, rows, samples
from training.errors import TrainingError
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


class SomeAround:
    """A file that every other sample's file imports, and a neighbour."""

    def used(self, record: dict):
        return [("src/queue.py", "class Queue\n  def take(self)\n")] if record else []

    def neighbour(self, number: int):
        return {"path": "src/heap.py", "package": "p", "text": CODE.replace("Stack", "Heap")}


class Samples(support.TrainingTest):
    def setUp(self):
        super().setUp()
        self.vocabulary = open_vocabulary(self.make_vocabulary())

    def maker(self, fragment_share: float) -> samples.Maker:
        return samples.Maker(self.vocabulary, 512, samples.Mixture(fragments=fragment_share), Lengths(), 1)

    def made(self, fragment_share: float, count: int = 200) -> list:
        record = {"path": "src/stack.py", "package": "p", "text": CODE, "language": "python"}
        maker = self.maker(fragment_share)
        return [maker.make(record, SomeAround(), number, 0) for number in range(count)]

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
        read = rows.Rows(self.make_samples())
        batch = read.batch(0, 8)
        shares = read.opening_shares(batch)
        self.assertEqual(shares.shape, (8, read.context))
        self.assertGreater((shares == 1).sum(), 0)
        for row, of_row in zip(batch.tolist(), shares.tolist()):
            behind = None  # tokens after <fim_middle>; None where there is no open one
            for token, target, share in zip(row, row[1:], of_row):
                behind = 0 if token == read.middle else None if token == read.end or behind is None else behind
                behind = None if behind is None else behind + 1
                expected = 1 / behind if behind is not None and behind <= rows.OPENING else 0
                self.assertAlmostEqual(share, expected, msg=f"{target} in {row}")

    def test_a_row_holds_whole_samples_and_the_beginning_of_one_more(self):
        chance = random.Random(3)
        made = [[number] * chance.randrange(20, 90) for number in range(400)]  # a number for each sample
        packer, packed = samples.Packer(100), []
        for sample in made:
            packed.append(packer.add(sample))
        while (row := packer.next()) is not None:
            packed.append(row)
        packed = [row for row in packed if row]
        self.assertEqual({len(row) for row in packed}, {100})
        whole, cut = collections.Counter(), 0
        for row in packed:
            parts = [(number, len(list(same))) for number, same in itertools.groupby(row)]
            whole.update(number for number, count in parts if count == len(made[number]))
            cut += sum(count < len(made[number]) for number, count in parts)
        self.assertEqual(set(whole.values()), {1})
        self.assertGreater(len(whole), 390)  # the last ones fill no row
        self.assertLessEqual(cut, len(packed))

    def test_text_of_a_language_is_taken_as_often_as_is_said(self):
        maker = samples.Maker(self.vocabulary, 512, samples.Mixture(languages=(("rust", 2.5), ("java", 0.25))), Lengths(), 1)
        counted = lambda language: sum(maker.count(100, language, chance) for _ in range(1000)) / 1000
        chance = random.Random(1)
        self.assertEqual(counted("python"), 1)
        self.assertAlmostEqual(counted("rust"), 2.5, delta=0.1)
        self.assertAlmostEqual(counted("java"), 0.25, delta=0.06)
        self.assertEqual(samples.languages_of("rust=2.5,java=0.25"), (("rust", 2.5), ("java", 0.25)))
        for wrong in ("cobol=1", "rust", "rust=-1", "rust=nan"):
            with self.assertRaises(TrainingError):
                samples.languages_of(wrong)

    def test_processes_make_the_same_samples(self):
        one, two = (self.make_samples(f"jobs-{jobs}", "--jobs", str(jobs)) for jobs in (1, 2))
        self.assertEqual((one / "rows.bin").read_bytes(), (two / "rows.bin").read_bytes())

    def test_before_middle_and_after_are_a_piece_of_the_file(self):
        for ids in self.made(0.5):
            parts = self.parts(ids)
            self.assertIn(parts.get("text") or parts["before"] + parts["middle"] + parts["after"], CODE)

    def test_a_piece_of_a_long_file_ends_with_a_line(self):
        text, chance = "".join(f"def name_{number}(argument):\n    return argument\n" for number in range(200)), random.Random(8)
        for _ in range(200):
            piece = samples.piece_of(text, 700, chance)
            self.assertIn("\n" + piece, "\n" + text)
            self.assertTrue(600 < len(piece) <= 700 and piece.endswith("\n"), piece)
        self.assertEqual(samples.piece_of("x" * 1000, 700, chance), "x" * 700)

    def test_most_have_a_hole_and_many_have_files_in_front(self):
        made = [self.parts(ids) for ids in self.made(0.0, 1000)]
        with_hole, plain = [parts for parts in made if "middle" in parts], samples.Mixture()
        self.assertAlmostEqual(len(with_hole) / len(made), plain.fim, delta=0.05)
        heads = [self.vocabulary.decode([token for token in parts["head"] if token != self.vocabulary.file]) for parts in with_hole]
        share = lambda what: sum(what in head for head in heads) / len(heads)
        self.assertAlmostEqual(share("src/queue.py\nclass Queue\n  def take(self)\nsrc/stack.py\n"), plain.head, delta=0.06)
        self.assertAlmostEqual(share("class Heap"), (1 - plain.head) * plain.neighbour, delta=0.03)
        self.assertAlmostEqual(share("src/stack.py"), 1 - (1 - plain.head) * (1 - plain.neighbour) * (1 - plain.path), delta=0.06)

    def test_fragments_change_tokens_and_not_text(self):
        whole, broken = self.made(0.0), self.made(1.0)
        self.assertEqual([self.parts(ids) | {"head": None} for ids in whole], [self.parts(ids) | {"head": None} for ids in broken])
        self.assertGreater(sum(map(len, broken)), sum(map(len, whole)))

    def test_middles_look_like_editing(self):
        chance = random.Random(5)
        for _ in range(200):
            rest = holes.line_rest(CODE, chance)
            self.assertNotIn("\n", CODE[rest.begin:rest.end])
            self.assertTrue(rest.end == len(CODE) or CODE[rest.end] == "\n")
            whole = holes.lines(CODE, chance)
            self.assertTrue(whole.begin == 0 or CODE[whole.begin - 1] == "\n")
        blocks = {CODE[hole.begin:hole.end] for hole in (holes.block(CODE, chance) for _ in range(300))}
        self.assertIn("\n        self.items.append(item)\n        return self\n", blocks)

    def test_after_begins_on_the_next_line_as_efimd_has_it_or_at_the_cursors_own(self):
        middles = [parts for parts in map(self.parts, self.made(0.0, 500)) if parts.get("after")]
        # Where a blank line follows, both are true.
        self.assertGreater(sum(parts["middle"].endswith("\n") for parts in middles) / len(middles), 0.3)
        self.assertGreater(sum(parts["after"].startswith("\n") for parts in middles) / len(middles), 0.1)

    def test_what_was_typed_is_whole_lines_and_the_last_newline(self):
        chance = random.Random(6)
        lengths = set()
        for _ in range(300):
            hole = holes.typed(CODE, chance)
            self.assertTrue(hole.begin == 0 or CODE[hole.begin - 1] == "\n")
            self.assertEqual(CODE[hole.end - 1], "\n")
            lengths.add(CODE[hole.begin:hole.end].count("\n"))
        self.assertGreaterEqual(len(lengths), 5)

    def test_an_edit_ends_at_a_words_end_and_old_code_follows(self):
        chance = random.Random(7)
        for _ in range(300):
            hole = holes.edit(CODE, chance)
            self.assertTrue(hole.begin == 0 or CODE[hole.begin - 1] == "\n")
            self.assertFalse(CODE[hole.end - 1].isalnum() and CODE[hole.end:hole.end + 1].isalnum())

    def test_kinds_of_holes_are_chosen_by_name(self):
        self.assertEqual(samples.holes_of("typed=1,edit=0.5"), (("typed", 1.0), ("edit", 0.5)))
        for wrong in ("typed", "typed=x", "other=1", "typed=-1", "typed=0", ""):
            with self.assertRaises(TrainingError):
                samples.holes_of(wrong)

    def test_the_same_seed_gives_the_same_rows_and_each_begins_with_a_sample(self):
        first, again = self.make_samples("first"), self.make_samples("again")
        self.assertEqual((first / "rows.bin").read_bytes(), (again / "rows.bin").read_bytes())
        self.assertNotEqual((first / "rows.bin").read_bytes(), (self.make_samples("other", "--seed", "2") / "rows.bin").read_bytes())
        read = rows.Rows(first)
        self.assertEqual(read.context, 64)
        self.assertLess(read.highest_token(), 1024)
        self.assertEqual(json.loads((first / "samples.json").read_text())["fragment_lengths"], [1, 200])

    def test_every_row_is_visited_once_an_epoch(self):
        read = rows.Rows(self.make_samples())
        epoch = [read._at(number) for number in range(read.count)]
        self.assertEqual(sorted(epoch), list(range(read.count)))
        self.assertNotEqual(epoch, [read._at(read.count + number) for number in range(read.count)])

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

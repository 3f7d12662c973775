"""Fragment tokenization as properties, over random texts and the vocabulary of a real corpus."""
import random
import unittest

import support

from training import fragments
from training.errors import TrainingError
from training.vocabulary import open_vocabulary

ALPHABET = "abcde_ABC  \n\t(){};=+019é語🙂▁"


class Fragments(support.TrainingTest):
    def setUp(self):
        super().setUp()
        self.vocabulary = open_vocabulary(self.make_vocabulary())

    def texts(self, count: int):
        chance = random.Random(7)
        for _ in range(count):
            yield "".join(chance.choices(ALPHABET, k=chance.randrange(400)))  # U+2581 stands for a space in sentencepiece

    def test_ids_of_fragments_decode_to_the_text(self):
        chance = random.Random(1)
        for text in self.texts(300):
            for lengths in (fragments.Lengths(1, 1), fragments.Lengths(1, 5), fragments.Lengths(1, 200)):
                ids = fragments.encode(text, self.vocabulary.encode, fragments.boundaries(len(text), lengths, chance))
                self.assertEqual(self.vocabulary.decode(ids), text)

    def test_boundaries_cover_the_text_with_lengths_that_were_asked_for(self):
        chance = random.Random(2)
        lengths = fragments.Lengths(3, 17)
        for length in (0, 1, 2, 3, 100, 5000):
            ends = fragments.boundaries(length, lengths, chance)
            sizes = [end - begin for begin, end in zip(ends, ends[1:])]
            self.assertEqual((ends[0], ends[-1]), (0, length))
            self.assertTrue(all(3 <= size <= 17 for size in sizes[:-1]))
            self.assertTrue(all(1 <= size <= 17 for size in sizes[-1:]))

    def test_lengths_are_evenly_distributed(self):
        ends = fragments.boundaries(1_000_000, fragments.Lengths(1, 200), random.Random(3))
        sizes = [end - begin for begin, end in zip(ends, ends[1:])][:-1]
        self.assertAlmostEqual(sum(sizes) / len(sizes), 100.5, delta=3)
        self.assertTrue({1, 200} <= set(sizes))

    def test_no_token_reaches_over_a_boundary(self):
        chance = random.Random(4)
        for text in self.texts(100):
            ends = fragments.boundaries(len(text), fragments.Lengths(1, 20), chance)
            ids = fragments.encode(text, self.vocabulary.encode, ends)
            reached, starts = 0, set()
            for begin, end in zip(ends, ends[1:]):
                starts.add(reached)
                reached += len(self.vocabulary.encode(text[begin:end]))
            self.assertEqual(reached, len(ids))
            for begin, start in zip(ends, sorted(starts)):
                self.assertEqual(self.vocabulary.decode(ids[:start]), text[:begin])

    def test_a_broken_word_gets_other_tokens_than_a_whole_one(self):
        whole = self.vocabulary.encode("return value")
        self.assertNotEqual(fragments.encode("return value", self.vocabulary.encode, [0, 3, 12]), whole)
        self.assertEqual(fragments.encode("return value", self.vocabulary.encode, [0, 12]), whole)

    def test_lengths_that_make_no_sense_are_refused(self):
        for shortest, longest in ((0, 5), (6, 5), (-1, 1)):
            with self.assertRaises(TrainingError):
                fragments.Lengths(shortest, longest)


if __name__ == "__main__":
    unittest.main()

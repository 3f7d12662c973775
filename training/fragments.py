"""Fragment tokenization (arXiv 2505.21889): a text is cut into fragments of random length, each is tokenized on its own, and the
ids are put together. A model learns from it to go on in the middle of a word, because a cursor mostly stands there.

The paper draws lengths evenly from 1 to 200 and does not say of what; here they are characters.
"""
import dataclasses
import random

from training.errors import TrainingError


@dataclasses.dataclass(frozen=True)
class Lengths:
    """How long fragments are, in characters."""

    shortest: int = 1
    longest: int = 200

    def __post_init__(self):
        if not 1 <= self.shortest <= self.longest:
            raise TrainingError(f"fragments of {self.shortest} to {self.longest} characters: expected 1 <= shortest <= longest")


def boundaries(length: int, lengths: Lengths, chance: random.Random) -> list:
    """The cuts of a text of `length` characters: 0, then the ends of the fragments; the last is `length`."""
    ends = [0]
    while ends[-1] < length:
        ends.append(min(length, ends[-1] + chance.randint(lengths.shortest, lengths.longest)))
    return ends


def encode(text: str, encode_whole, ends: list) -> list:
    """Ids of the text, each part between two of `ends` tokenized on its own. They decode to the text as its own ids do."""
    tokens = []
    for begin, end in zip(ends, ends[1:]):
        tokens += encode_whole(text[begin:end])
    return tokens


@dataclasses.dataclass(frozen=True)
class Encoder:
    """Tokenizes the texts of one sample, all in fragments or none."""

    encode_whole: object  # str -> ids
    lengths: object  # Lengths, or None for whole texts
    chance: random.Random

    def __call__(self, text: str) -> list:
        if self.lengths is None:
            return self.encode_whole(text)
        return encode(text, self.encode_whole, boundaries(len(text), self.lengths, self.chance))

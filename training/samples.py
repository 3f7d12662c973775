"""Makes training samples of a corpus, and packs them into rows.

A sample is a piece of a file, mostly with a hole (EFIM's form; with nothing typed after <fim_middle> it is PSM):

    [[<file_sep> path \\n text of a neighbour] <file_sep> path \\n] <fim_prefix> before <fim_suffix> after <fim_middle> middle <eot>

else the piece as it stands, then <eot>. Paths are those in the package's archive. Middles look like typed text: the end of a line
from somewhere inside it, whole lines, an indented block, and any span of characters. A share of samples is tokenized in fragments
(fragments.py), the others whole. The same seed gives the same samples with and without fragments; only their tokens differ.

OUT is a folder: rows.bin, token ids of 16 or 32 bits, rows of context + 1; and samples.json, what they are. A row begins with a
sample's beginning, so that it holds the text that <fim_middle> refers to. The sample that reaches over its end is cut there.
"""
import argparse
import dataclasses
import json
import pathlib
import random

from training import corpus, vocabulary
from training.errors import TrainingError
from training.files import whole_file
from training.fragments import Encoder, Lengths

FIM_SHARE = 0.75
PATH_SHARE = 0.3  # of FIM samples have their path in front
NEIGHBOUR_SHARE = 0.15  # of FIM samples have another file of the package in front as well
NEIGHBOUR_CHARACTERS = 400
NEWLINE_SHARE = 0.6  # of holes that end at a line's end hold its newline too: efimd's after begins on the next line
FRAGMENT_SHARE = 0.5
CHARACTERS_A_TOKEN = 2.7  # how much text a row holds, cautiously
OPENING = 16  # tokens after <fim_middle>: about as many as a suggestion has
PIECE_SHARES = (0.2, 1.0)  # of a row: editors show long windows and, on a first visit, short ones


@dataclasses.dataclass(frozen=True)
class Hole:
    begin: int
    end: int


def line_bounds(text: str, at: int):
    """Begin and end of the line that character `at` stands in, without its newline."""
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def line_rest(text: str, chance: random.Random) -> Hole:
    """From inside a line, after its indentation, to its end."""
    begin, end = line_bounds(text, chance.randrange(len(text)))
    indent = len(text[begin:end]) - len(text[begin:end].lstrip())
    return Hole(chance.randint(begin + indent, end), end)


def lines(text: str, chance: random.Random) -> Hole:
    """One to six whole lines, the last without its newline, as a suggestion ends."""
    begin, end = line_bounds(text, chance.randrange(len(text)))
    for _ in range(chance.randrange(6)):
        if end + 1 < len(text):
            end = line_bounds(text, end + 1)[1]
    return Hole(begin, end)


def block(text: str, chance: random.Random) -> Hole:
    """The lines below one that are indented deeper than it, from the end of that line; a line's rest if there are none."""
    begin, end = line_bounds(text, chance.randrange(len(text)))
    depth = indentation(text[begin:end])
    last = end
    while last + 1 < len(text):
        next_begin, next_end = line_bounds(text, last + 1)
        line = text[next_begin:next_end]
        if line.strip() and indentation(line) <= depth:
            break
        last = next_end
    return Hole(end, last) if last > end else line_rest(text, chance)


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def span(text: str, chance: random.Random) -> Hole:
    begin, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
    return Hole(begin, min(end, begin + len(text) // 3))


HOLES = ((line_rest, 0.35), (lines, 0.3), (block, 0.15), (span, 0.2))


def draw_hole(text: str, chance: random.Random) -> Hole:
    kinds, shares = zip(*HOLES)
    hole = chance.choices(kinds, shares)[0](text, chance)
    with_newline = chance.random() < NEWLINE_SHARE and text[hole.end:hole.end + 1] == "\n"
    return Hole(hole.begin, hole.end + 1) if with_newline else hole


def piece_of(text: str, characters: int, chance: random.Random) -> str:
    """A window of the file that begins at a line's start."""
    if len(text) <= characters:
        return text
    begin = line_bounds(text, chance.randrange(len(text) - characters))[0]
    return text[begin:begin + characters]


@dataclasses.dataclass
class Maker:
    """Samples of one file after another."""

    vocabulary: vocabulary.Vocabulary
    context: int
    fragment_share: float
    lengths: Lengths
    seed: int

    @property
    def characters(self) -> int:
        return int(self.context * CHARACTERS_A_TOKEN)

    def count(self, record: dict) -> int:
        """How many samples of the file have together about as much text as it has."""
        return max(1, round(len(record["text"]) / (self.characters * sum(PIECE_SHARES) / 2)))

    def make(self, record: dict, neighbour, number: int, part: int) -> list:
        """Token ids of one sample of file `number`."""
        # Two random streams give the sample and its cuts into fragments, so that the first stays
        # the same whatever the second does.
        chance = random.Random(f"{self.seed}/{number}/{part}")
        cuts = random.Random(f"{self.seed}/{number}/{part}/fragments")
        encode = Encoder(self.vocabulary.encode, self.lengths if cuts.random() < self.fragment_share else None, cuts)
        return self.sample(record, neighbour, int(self.characters * chance.uniform(*PIECE_SHARES)), chance, encode)

    def sample(self, record: dict, neighbour, characters: int, chance: random.Random, encode) -> list:
        ids = self.vocabulary
        if chance.random() >= FIM_SHARE:
            return encode(piece_of(record["text"], characters, chance)) + [ids.end]
        head = []
        where = chance.random() if ids.file is not None else 1.0
        if where < NEIGHBOUR_SHARE and neighbour is not None:
            near = piece_of(neighbour["text"], NEIGHBOUR_CHARACTERS, chance)
            characters = max(characters - len(near), NEIGHBOUR_CHARACTERS)
            head += [ids.file] + encode(neighbour["path"] + "\n" + near)
        if where < PATH_SHARE:
            head += [ids.file] + encode(record["path"] + "\n")
        text = piece_of(record["text"], characters, chance)
        hole = draw_hole(text, chance)
        return (head + [ids.prefix] + encode(text[:hole.begin]) + [ids.suffix] + encode(text[hole.end:])
                + [ids.middle] + encode(text[hole.begin:hole.end]) + [ids.end])


def neighbours(records):
    """Each record with the one before it in its package, or None."""
    last = None
    for record in records:
        yield record, last if last is not None and last["package"] == record["package"] else None
        last = record


def write(corpus_folder: pathlib.Path, split: str, maker: Maker, out: pathlib.Path, rows_max: int) -> dict:
    import numpy

    kind = numpy.dtype("<u2" if maker.vocabulary.size <= 1 << 16 else "<u4")
    row, rows, count, left = maker.context + 1, 0, 0, []
    pairs = list(neighbours(corpus.records(corpus_folder, split)))
    # Mixed over all files: a few rows of many teach more than many of a few, which are soon known by heart.
    parts = [(number, part) for number, (record, _) in enumerate(pairs) for part in range(maker.count(record))]
    random.Random(maker.seed).shuffle(parts)
    with whole_file(out / "rows.bin") as file:
        for number, part in parts:
            if rows >= rows_max:
                break
            left += maker.make(*pairs[number], number, part)
            count += 1
            if len(left) >= row:
                file.write(numpy.array(left[:row], kind).tobytes())
                left, rows = [], rows + 1
    if rows == 0:
        raise TrainingError(f"{corpus_folder}: the {split} split has too little text for one row of {row} tokens")
    facts = {"rows": rows, "context": maker.context, "samples": count, "split": split, "bits": kind.itemsize * 8,
             "middle": maker.vocabulary.middle, "end": maker.vocabulary.end,
             "fragment_share": maker.fragment_share, "fragment_lengths": dataclasses.astuple(maker.lengths), "seed": maker.seed}
    with whole_file(out / "samples.json", "w") as file:
        json.dump(facts, file, indent=1)
    return facts


class Rows:
    """Packed rows on disk; row(i) are `context + 1` token ids. An epoch visits all of them in an order of its own."""

    def __init__(self, folder: pathlib.Path):
        import numpy

        try:
            facts = json.loads((folder / "samples.json").read_text(encoding="utf-8"))
            self.count, self.context = facts["rows"], facts["context"]
            self.fragment_share, self.middle, self.end = facts["fragment_share"], facts["middle"], facts["end"]
            flat = numpy.memmap(folder / "rows.bin", f"<u{facts['bits'] // 8}", mode="r")
            self._rows = flat.reshape(self.count, self.context + 1)
        except FileNotFoundError as error:
            raise TrainingError(f"{folder}: has no samples; make them first: python3 -m training samples") from error
        except (ValueError, KeyError, TypeError) as error:
            raise TrainingError(f"{folder}: its samples are damaged, make them again: {error}") from error
        self._epoch, self._order = None, None

    def batch(self, step: int, size: int):
        """The rows of a training step: a function of the step alone, so that training resumes exactly."""
        import numpy

        return numpy.stack([self._rows[self._at(step * size + number)] for number in range(size)]).astype(numpy.int64)

    def first(self, begin: int, size: int):
        """Rows as they stand on disk: the same for every measurement."""
        import numpy

        return self._rows[begin:begin + size].astype(numpy.int64)

    def opening_shares(self, rows):
        """For each target of rows [B][T + 1]: 1 / n if it is the n-th token after <fim_middle>, up to OPENING; 0 elsewhere. [B][T]"""
        import numpy

        at = numpy.arange(rows.shape[1])
        last = lambda token: numpy.maximum.accumulate(numpy.where(rows == token, at, -1), 1)
        middle, end = last(self.middle)[:, :-1], last(self.end)[:, :-1]
        distance = at[1:] - middle
        return numpy.where((middle > end) & (distance <= OPENING), 1 / distance, 0).astype(numpy.float32)

    def highest_token(self) -> int:
        return int(self._rows.max())

    def _at(self, number: int) -> int:
        import numpy

        epoch, at = divmod(number, self.count)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, numpy.random.default_rng(epoch).permutation(self.count)
        return self._order[at]


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training samples", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True,
                        help="a sentencepiece model, or a Hugging Face checkpoint folder")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the samples")
    parser.add_argument("--split", choices=("train", "validation"), default="train")
    parser.add_argument("--context", type=int, default=512, help="tokens of a row")
    parser.add_argument("--fragment-share", type=float, default=FRAGMENT_SHARE, help="of the samples; 0: all whole")
    parser.add_argument("--fragment-lengths", type=int, nargs=2, default=(1, 200), metavar=("SHORTEST", "LONGEST"),
                        help="in characters, evenly distributed")
    parser.add_argument("--rows-max", type=int, default=1 << 40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    if not 0 <= options.fragment_share <= 1:
        parser.error("--fragment-share lies between 0 and 1")
    if options.context < 16:
        parser.error("--context: at least 16 tokens")
    maker = Maker(vocabulary.open_vocabulary(options.tokenizer), options.context, options.fragment_share,
                  Lengths(*options.fragment_lengths), options.seed)
    facts = write(options.corpus, options.split, maker, options.out, options.rows_max)
    print(f"{options.out}: {facts['samples']} samples in {facts['rows']} rows of {options.context} tokens "
          f"({facts['rows'] * options.context / 1e6:.1f} M tokens)")
    return 0

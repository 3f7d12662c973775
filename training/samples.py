"""Makes training samples of a corpus, and packs them into rows.

A sample is a piece of a file, mostly with a hole (holes.py), in the form in which efimd lays a prompt out:

    [head] [<file_sep> path \\n] <fim_prefix> before <fim_suffix> after <fim_middle> middle <eot>

else the piece as it stands, then <eot>. The head is, for each of up to six files that the file imports and that the package has,
<file_sep> path \\n declarations (heads.py); or a neighbour file's piece in the same form. Paths are those in the package's archive. Some
samples show little of the file, or a short `after`, as on a first visit (A-10). A share of samples is tokenized in fragments
(fragments.py), the others whole. The same seed gives the same samples with and without fragments; only their tokens differ.

OUT is a folder: rows.bin, token ids of 16 or 32 bits, rows of context + 1; and samples.json, what they are. A row holds whole samples,
each the longest of some that fits behind the others, because a sample that is cut loses its middle, which stands last. What is
left at a row's end gets the beginning of another.
"""
import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import pathlib
import random

from training import corpus, heads, holes, vocabulary
from training.errors import TrainingError
from training.files import whole_file
from training.fragments import Encoder, Lengths
from training.languages import LANGUAGES, language_of
from training.rows import OPENING, Rows  # noqa: F401  the samples' readers know them from here

CHARACTERS_A_TOKEN = 2.7  # how much text a row holds, cautiously
PIECE_SHARES = (0.2, 1.0)  # of a row: editors show long windows and, on a first visit, short ones
AFTER_CHARACTERS = 200  # a short `after`: about 64 tokens
WAITING = 48  # samples from which a row's next is chosen
CHUNK = 64  # samples that a process makes at a time
HEAD_TEXT_SHARE = 0.25  # of a sample's characters, at most; efimd gives 15 % of its window


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Shares: of samples, of those with a hole, and of holes."""

    fim: float = 0.85  # of samples have a hole
    path: float = 0.5  # of those have their path in front
    head: float = 0.5  # of those whose file imports files of the package have their declarations, then with the path
    neighbour: float = 0.1  # of the others have another file of the package
    short_after: float = 0.3  # show little behind the hole
    newline: float = 0.6  # of holes that may end before or behind a newline hold it
    fragments: float = 0.5  # of samples are tokenized in fragments
    holes: tuple = (("typed", 0.6), ("edit", 0.15), ("rest", 0.15), ("block", 0.1))
    languages: tuple = ()  # (language, how often its text is taken), for those that are not taken once


def piece_of(text: str, characters: int, chance: random.Random) -> str:
    """A window of whole lines of the file: the model learns to end where a line ends, and not inside of a word."""
    if len(text) <= characters:
        return text
    begin = holes.line_bounds(text, chance.randrange(len(text) - characters))[0]
    return cut_at_line(text[begin:], characters)


@dataclasses.dataclass
class Maker:
    """Samples of one file after another."""

    vocabulary: vocabulary.Vocabulary
    context: int
    mixture: Mixture
    lengths: Lengths
    seed: int

    @property
    def characters(self) -> int:
        return int(self.context * CHARACTERS_A_TOKEN)

    def count(self, size: int, language: str, chance: random.Random) -> int:
        """How many samples of a file of `size` characters have together about as much text as it has, times its language's weight."""
        weight = dict(self.mixture.languages).get(language, 1.0)
        wanted = weight * max(1.0, size / (self.characters * sum(PIECE_SHARES) / 2))
        return int(wanted + (0.5 if weight == 1 else chance.random()))

    def make(self, record: dict, around, number: int, part: int) -> list:
        """Token ids of one sample of file `number`. `around` has used(record), the (path, declarations) of what it imports, and
        neighbour(number), another record of the package or None."""
        # Two random streams give the sample and its cuts into fragments, so that the first stays
        # the same whatever the second does.
        chance = random.Random(f"{self.seed}/{number}/{part}")
        cuts = random.Random(f"{self.seed}/{number}/{part}/fragments")
        encode = Encoder(self.vocabulary.encode, self.lengths if cuts.random() < self.mixture.fragments else None, cuts)
        characters = int(self.characters * chance.uniform(*PIECE_SHARES))
        if chance.random() >= self.mixture.fim:
            return encode(piece_of(record["text"], characters, chance)) + [self.vocabulary.end]
        front = self.front(record, around, number, characters, chance) if self.vocabulary.file is not None else []
        characters = max(characters - sum(map(len, front)), characters // 2)
        return [token for text in front for token in [self.vocabulary.file, *encode(text)]] + self.filled(record, characters, chance, encode)

    def front(self, record: dict, around, number: int, characters: int, chance: random.Random) -> list:
        """Texts that each stand behind a <file_sep>."""
        own = record["path"] + "\n"
        left = int(characters * HEAD_TEXT_SHARE)
        if chance.random() < self.mixture.head:
            out = []
            for path, declared in around.used(record):
                if declared and left > len(path) + 40:
                    text = cut_at_line(path + "\n" + declared, left)
                    out.append(text)
                    left -= len(text)
            if out:
                return [*out, own]
        neighbour = around.neighbour(number) if chance.random() < self.mixture.neighbour else None
        if neighbour is not None:
            return [neighbour["path"] + "\n" + piece_of(neighbour["text"], left, chance), own]
        return [own] if chance.random() < self.mixture.path else []

    def filled(self, record: dict, characters: int, chance: random.Random, encode) -> list:
        ids, text = self.vocabulary, piece_of(record["text"], characters, chance)
        hole = holes.draw(text, dict(self.mixture.holes), self.mixture.newline, chance)
        after = text[hole.end:]
        if chance.random() < self.mixture.short_after:
            after = cut_at_line(after, AFTER_CHARACTERS)
        return ([ids.prefix] + encode(text[:hole.begin]) + [ids.suffix] + encode(after)
                + [ids.middle] + encode(text[hole.begin:hole.end]) + [ids.end])


def cut_at_line(text: str, characters: int) -> str:
    """As many whole lines as fit; a part of the first where it alone is too long."""
    if len(text) <= characters:
        return text
    end = text.rfind("\n", 0, characters)
    return text[:end + 1] if end >= 0 else text[:characters]


class Around:
    """What stands around each file of a split. Files of a package stand beside each other in it."""

    def __init__(self, files: corpus.Files):
        self._files, self._packages = files, {}
        for name, numbers in itertools.groupby(range(len(files)), files.packages.__getitem__):
            numbers = list(numbers)
            self._packages[name] = heads.Package(numbers, [files.paths[number] for number in numbers], files.__getitem__)

    def used(self, record: dict):
        package = self._packages[record["package"]]
        return map(package.declarations, package.uses(record))

    def neighbour(self, number: int):
        same = number > 0 and self._files.packages[number - 1] == self._files.packages[number]
        return self._files[number - 1] if same else None


class Packer:
    """Puts samples into rows of `row` tokens."""

    def __init__(self, row: int):
        self._row, self._waiting = row, []

    def add(self, sample: list):
        """A row once enough samples wait to choose from, else None."""
        self._waiting.append(sample)
        return self.next() if len(self._waiting) > WAITING else None

    def next(self):
        """A row; None where what waits does not fill one."""
        if sum(map(len, self._waiting)) < self._row:
            return None
        out = self._waiting.pop(0)[:self._row]
        while len(out) < self._row:
            left = self._row - len(out)
            fitting = [number for number, sample in enumerate(self._waiting) if len(sample) <= left]
            if not fitting:
                out += min(self._waiting, key=len)[:left]  # it waits on: its middle is still to come
            else:
                out += self._waiting.pop(max(fitting, key=lambda number: len(self._waiting[number])))
            if not self._waiting and len(out) < self._row:
                return None
        return out


class Work:
    """Makes samples in processes of their own."""

    maker, files, around = None, None, None  # of this process

    @classmethod
    def begin(cls, corpus_folder: pathlib.Path, split: str, maker: Maker) -> None:
        cls.maker, cls.files = maker, corpus.Files(corpus_folder, split)
        cls.around = Around(cls.files)

    @classmethod
    def chunk(cls, parts: list) -> list:
        return [cls.maker.make(cls.files[number], cls.around, number, part) for number, part in parts]


def chunks_of(parts: list, jobs: int, begin: tuple):
    """The samples of each chunk of parts, in their order."""
    chunks = (parts[at:at + CHUNK] for at in range(0, len(parts), CHUNK))
    if jobs <= 1:
        Work.begin(*begin)
        yield from map(Work.chunk, chunks)
        return
    with concurrent.futures.ProcessPoolExecutor(jobs, initializer=Work.begin, initargs=begin) as pool:
        waiting = [pool.submit(Work.chunk, chunk) for chunk in itertools.islice(chunks, 4 * jobs)]
        try:
            while waiting:
                yield waiting.pop(0).result()
                waiting += [pool.submit(Work.chunk, chunk) for chunk in itertools.islice(chunks, 1)]
        finally:
            pool.shutdown(cancel_futures=True)


def write(corpus_folder: pathlib.Path, split: str, maker: Maker, out: pathlib.Path, rows_max: int, jobs: int = 1) -> dict:
    import numpy

    kind = numpy.dtype("<u2" if maker.vocabulary.size <= 1 << 16 else "<u4")
    row, rows, count, packer = maker.context + 1, 0, 0, Packer(maker.context + 1)
    files, chance = corpus.Files(corpus_folder, split), random.Random(maker.seed)
    # Mixed over all files: a few rows of many teach more than many of a few, which are soon known by heart.
    parts = [(number, part) for number, (size, path) in enumerate(zip(files.sizes, files.paths))
             for part in range(maker.count(size, language_of(path), chance))]
    chance.shuffle(parts)
    with whole_file(out / "rows.bin") as file:
        for made in chunks_of(parts, jobs, (corpus_folder, split, maker)):
            ready = [packer.add(sample) for sample in made]
            count += len(made)
            ready = [tokens for tokens in ready if tokens][:rows_max - rows]
            file.write(numpy.array(ready, kind).tobytes())
            rows += len(ready)
            if rows >= rows_max:
                break
        while rows < rows_max and (tokens := packer.next()):
            file.write(numpy.array(tokens, kind).tobytes())
            rows += 1
    if rows == 0:
        raise TrainingError(f"{corpus_folder}: the {split} split has too little text for one row of {row} tokens")
    facts = {"rows": rows, "context": maker.context, "samples": count, "split": split, "bits": kind.itemsize * 8,
             "vocabulary": maker.vocabulary.size, "middle": maker.vocabulary.middle, "end": maker.vocabulary.end,
             "fragment_share": maker.mixture.fragments, "fragment_lengths": dataclasses.astuple(maker.lengths), "seed": maker.seed,
             "mixture": dataclasses.asdict(maker.mixture)}
    with whole_file(out / "samples.json", "w") as file:
        json.dump(facts, file, indent=1)
    return facts


def holes_of(text: str) -> tuple:
    """"typed=0.4,edit=0.1" """
    out = []
    for word in text.split(","):
        name, _, share = word.partition("=")
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if name not in holes.KINDS or not 0 <= value < float("inf"):
            raise TrainingError(f"--holes {text}: KIND=SHARE,... is wanted, of {', '.join(holes.KINDS)}")
        out.append((name, value))
    if sum(value for _, value in out) <= 0:
        raise TrainingError(f"--holes {text}: some share is to be more than 0")
    return tuple(out)


def languages_of(text: str) -> tuple:
    """"rust=3,java=0.5" """
    out = []
    for word in filter(None, text.split(",")):
        name, _, weight = word.partition("=")
        try:
            value = float(weight)
        except ValueError:
            value = -1.0
        if name not in LANGUAGES.values() or not 0 <= value <= 100:
            raise TrainingError(f"--languages {text}: LANGUAGE=WEIGHT,... is wanted, of {', '.join(sorted(set(LANGUAGES.values())))}")
        out.append((name, value))
    return tuple(out)


SHARES = (("fim", "of samples have a hole"), ("path", "of those have their path in front"),
          ("head", "of those whose file imports others of the package have these files' declarations in front"),
          ("neighbour", "of the others have a piece of a neighbour file"), ("short_after", "show little behind the hole"))


def main(words: list) -> int:
    plain = Mixture()
    parser = argparse.ArgumentParser(prog="python3 -m training samples", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True,
                        help="a sentencepiece model, or a Hugging Face checkpoint folder")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the samples")
    parser.add_argument("--split", choices=("train", "validation"), default="train")
    parser.add_argument("--context", type=int, default=512, help="tokens of a row")
    for name, what in SHARES:
        parser.add_argument(f"--{name.replace('_', '-')}-share", type=float, default=getattr(plain, name),
                            help=f"{what}; {getattr(plain, name)} unless given")
    parser.add_argument("--holes", default=",".join(f"{name}={share}" for name, share in plain.holes),
                        help="how many of each kind; %(default)s unless given")
    parser.add_argument("--languages", default="", help="how often text is taken, by language: rust=3,java=0.5; once unless given")
    parser.add_argument("--fragment-share", type=float, default=plain.fragments, help="of the samples; 0: all whole")
    parser.add_argument("--fragment-lengths", type=int, nargs=2, default=(1, 200), metavar=("SHORTEST", "LONGEST"),
                        help="in characters, evenly distributed")
    parser.add_argument("--rows-max", type=int, default=1 << 40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes; the samples are the same")
    options = parser.parse_args(words)
    shares = {name: getattr(options, f"{name}_share") for name, _ in SHARES}
    for name, share in [*shares.items(), ("fragment", options.fragment_share)]:
        if not 0 <= share <= 1:
            parser.error(f"--{name.replace('_', '-')}-share lies between 0 and 1")
    if options.context < 16:
        parser.error("--context: at least 16 tokens")
    mixture = Mixture(**shares, fragments=options.fragment_share, holes=holes_of(options.holes),
                      languages=languages_of(options.languages))
    maker = Maker(vocabulary.open_vocabulary(options.tokenizer), options.context, mixture, Lengths(*options.fragment_lengths), options.seed)
    facts = write(options.corpus, options.split, maker, options.out, options.rows_max, options.jobs)
    print(f"{options.out}: {facts['samples']} samples in {facts['rows']} rows of {options.context} tokens "
          f"({facts['rows'] * options.context / 1e6:.1f} M tokens)")
    return 0

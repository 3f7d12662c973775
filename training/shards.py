"""Packs samples into compressed shards that travel to a machine with a card, where neither a network nor a tokenizer is; checks and
unpacks them.

OUT is a folder that git ignores (.shards, say): shards.json and shard-000.xz and so on, each of --shard-bytes at most, so that one
call can carry it. A token is one byte, its rank by frequency, if that is below 192; else two bytes, of which the second stands in a
stream of its own. Both streams are compressed by xz. After writing, every shard is read back and compared.

`train --samples OUT` reads them as they are: each shard for --epochs epochs, one shard after another (`gpu --order` has another order);
it stops, saved, before a shard that is not there, and the same command goes on once it is.
"""
import argparse
import bisect
import collections
import concurrent.futures
import dataclasses
import hashlib
import itertools
import json
import lzma
import pathlib
import threading
import time

from training.errors import TrainingError
from training.files import whole_file
from training.rows import Rows, opening_shares

FACTS = "shards.json"
FORMAT = "efim-shards 1"
SHORT = 192  # ranks of one byte; the others' first bytes are 192 to 255, which reach over 16,384 more
TOKENS_MAX = SHORT + ((256 - SHORT) << 8)
BLOCK_TOKENS = 4_000_000  # compressed together
SHARD_BYTES = 40_000_000


def order_of(rows: Rows, vocabulary: int):
    """(token of each rank, rank of each token)."""
    import numpy

    if vocabulary > TOKENS_MAX:
        raise TrainingError(f"a vocabulary of {vocabulary} tokens; shards hold {TOKENS_MAX} at most")
    counts = numpy.zeros(vocabulary, numpy.int64)
    for begin in range(0, rows.count, 1 << 12):
        counts += numpy.bincount(rows.first(begin, 1 << 12).ravel(), minlength=vocabulary)
    tokens = numpy.argsort(-counts, kind="stable")
    ranks = numpy.empty_like(tokens)
    ranks[tokens] = numpy.arange(vocabulary)
    return tokens, ranks


def packed(ranks) -> tuple:
    """Two streams of bytes for an array of ranks."""
    import numpy

    long = ranks >= SHORT
    beyond = ranks[long] - SHORT
    first = ranks.copy()
    first[long] = SHORT + (beyond >> 8)
    return lzma.compress(first.astype(numpy.uint8).tobytes(), preset=6), lzma.compress((beyond & 255).astype(numpy.uint8).tobytes(), preset=6)


def unpacked(first: bytes, second: bytes):
    import numpy

    ranks = numpy.frombuffer(lzma.decompress(first), numpy.uint8).astype(numpy.int64)
    rest = numpy.frombuffer(lzma.decompress(second), numpy.uint8)
    long = ranks >= SHORT
    ranks[long] = SHORT + ((ranks[long] - SHORT) << 8) + rest
    return ranks


def blocks_of(rows: Rows, ranks):
    """(rows, streams, digest of the tokens) of each block."""
    many = max(1, BLOCK_TOKENS // (rows.context + 1))
    for begin in range(0, rows.count, many):
        tokens = rows.first(begin, many)
        yield len(tokens), packed(ranks[tokens.ravel()]), digest(tokens)


def digest(tokens) -> str:
    return hashlib.blake2b(tokens.astype("<u4").tobytes(), digest_size=16).hexdigest()


def write(samples: pathlib.Path, out: pathlib.Path, shard_bytes: int, shards_max: int, report) -> dict:
    rows = Rows(samples)
    made_of = json.loads((samples / "samples.json").read_text(encoding="utf-8"))
    tokens, ranks = order_of(rows, made_of["vocabulary"])
    out.mkdir(parents=True, exist_ok=True)
    for old in (out / FACTS, *out.glob("shard-*.xz")):  # the folder may hold what is not ours
        old.unlink(missing_ok=True)
    shards, file = [], None
    for count, streams, check in blocks_of(rows, ranks):
        size = sum(map(len, streams))
        if size > shard_bytes:
            raise TrainingError(f"--shard-bytes {shard_bytes}: a block alone has {size}")
        if not shards or shards[-1]["bytes"] + size > shard_bytes:
            if file is not None:
                file.close()
                report(shards[-1])
            if len(shards) == shards_max:
                file = None
                break
            shards.append({"file": f"shard-{len(shards):03}.xz", "rows": 0, "bytes": 0, "blocks": []})
            file = open(out / shards[-1]["file"], "wb")
        file.write(b"".join(streams))
        shards[-1]["rows"] += count
        shards[-1]["bytes"] += size
        shards[-1]["blocks"].append({"rows": count, "bytes": list(map(len, streams)), "digest": check})
    if file is not None:
        file.close()
        report(shards[-1])
    facts = {"format": FORMAT, "samples": made_of, "tokens_by_rank": tokens.tolist(), "shards": shards}
    with whole_file(out / FACTS, "w") as manifest:
        json.dump(facts, manifest)
    return facts


@dataclasses.dataclass(frozen=True)
class Visit:
    """Epochs of one shard, one after another."""

    shard: int
    first: int  # epochs that it had before
    epochs: int


def visits_of(order: list) -> list:
    """0, 0, 1, 0: two epochs of shard 0, one of shard 1, a third of shard 0."""
    out, seen = [], collections.Counter()
    for shard, same in itertools.groupby(order):
        epochs = len(list(same))
        out.append(Visit(shard, seen[shard], epochs))
        seen[shard] += epochs
    return out


class ShardRows:
    """The rows of shards as training reads them: Rows's interface. Those that are still to be visited stay in memory once they
    were read, and the next is read while one is trained on."""

    def __init__(self, folder: pathlib.Path, epochs: int = 1, wait_s: float = 0):
        """`wait_s`: how long here() waits for a shard that is on its way."""
        import numpy

        self._folder, self._wait_s = folder, wait_s
        try:
            facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
            if facts["format"] != FORMAT:
                raise TrainingError(f"{folder / FACTS}: is no list of shards ({FORMAT})")
            made_of = facts["samples"]
            self.shards, self._tokens = facts["shards"], numpy.array(facts["tokens_by_rank"], numpy.uint16)
            self.context, self.vocabulary = made_of["context"], made_of["vocabulary"]
            self.fragment_share, self.middle, self.end = made_of["fragment_share"], made_of["middle"], made_of["end"]
            self.count = sum(shard["rows"] for shard in self.shards)
        except (ValueError, KeyError, TypeError) as error:
            raise TrainingError(f"{folder / FACTS}: is damaged: {error}") from error
        self._loaded, self._order = {}, (None, None)
        self._lock, self._loader = threading.Lock(), concurrent.futures.ThreadPoolExecutor(1)
        self.visit([number for number in range(len(self.shards)) for _ in range(epochs)])

    def visit(self, order: list) -> None:
        """Numbers of shards, in the order of their epochs."""
        wrong = [number for number in order if not 0 <= number < len(self.shards)]
        if wrong or not order:
            raise TrainingError(f"{self._folder}: there are shards 0 to {len(self.shards) - 1}; the order names {wrong or 'none'}")
        self._visits, self._ready = visits_of(order), None

    def steps(self, size: int) -> int:
        """How many steps of `size` rows all shards have together."""
        return self._ends(size)[-1]

    def here(self, step: int, size: int) -> bool:
        """Whether the shard of this step is there."""
        if step >= self.steps(size):
            return True
        path, until = self._path(self._visit_at(step, size)), time.monotonic() + self._wait_s
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.2)
        return path.exists()

    def wanted(self, step: int, size: int) -> str:
        return self._path(self._visit_at(step, size)).name

    def batch(self, step: int, size: int):
        import numpy

        at = self._visit_at(step, size)
        rows = self.load(self._visits[at].shard)
        self._get_ready(at)
        begin = (step - (self._ends(size)[at - 1] if at else 0)) * size
        numbers = [self._row(self._visits[at], begin + more, len(rows)) for more in range(size)]
        return rows[numbers].astype(numpy.int64)

    def _get_ready(self, at: int) -> None:
        """For the visit after visit `at`."""
        if at + 1 >= len(self._visits) or self._ready == at or not self._path(at + 1).exists():
            return
        self._ready = at
        for number in set(self._loaded) - {visit.shard for visit in self._visits[at:]}:
            del self._loaded[number]
        self._loader.submit(self.load, self._visits[at + 1].shard)  # what is wrong with it is told when it is wanted

    def first(self, begin: int, size: int):
        import numpy

        return self.load(0)[begin:begin + size].astype(numpy.int64)

    def opening_shares(self, rows):
        return opening_shares(rows, self.middle, self.end)

    def highest_token(self) -> int:
        return self.vocabulary - 1

    def load(self, number: int):
        rows = self._loaded.get(number)  # without the lock: another is perhaps being read
        if rows is not None:
            return rows
        with self._lock:
            if number not in self._loaded:
                self._loaded[number] = self._read(number)
            return self._loaded[number]

    def _read(self, number: int):
        import numpy

        shard, parts = self.shards[number], []
        path = self._folder / shard["file"]
        try:
            with open(path, "rb") as file:
                for block in shard["blocks"]:
                    first, second = (file.read(size) for size in block["bytes"])
                    tokens = self._tokens[unpacked(first, second)].reshape(block["rows"], self.context + 1)
                    if digest(tokens) != block["digest"]:
                        raise TrainingError(f"{path}: is damaged; make or carry it again")
                    parts.append(tokens)
        except FileNotFoundError as error:
            raise TrainingError(f"{path}: is missing; carry it, and start the same command again") from error
        except (lzma.LZMAError, ValueError, IndexError, EOFError) as error:
            raise TrainingError(f"{path}: is damaged; make or carry it again ({error})") from error
        return numpy.concatenate(parts)

    def _path(self, visit: int) -> pathlib.Path:
        return self._folder / self.shards[self._visits[visit].shard]["file"]

    def _ends(self, size: int) -> list:
        ends = []
        for visit in self._visits:
            shard = self.shards[visit.shard]
            steps = shard["rows"] * visit.epochs // size
            if steps == 0:
                raise TrainingError(f"{shard['file']}: {shard['rows']} rows in {visit.epochs} epochs; a step has {size}")
            ends.append(steps + (ends[-1] if ends else 0))
        return ends

    def _visit_at(self, step: int, size: int) -> int:
        return min(bisect.bisect_right(self._ends(size), step), len(self._visits) - 1)

    def _row(self, visit: Visit, number: int, rows: int) -> int:
        import numpy

        epoch, at = divmod(number, rows)
        epoch += visit.first
        if self._order[0] != (visit.shard, epoch):
            self._order = ((visit.shard, epoch), numpy.random.default_rng((visit.shard, epoch)).permutation(rows))
        return self._order[1][at]


def open_rows(folder: pathlib.Path, epochs: int = 1):
    """The rows of a folder of samples or of shards."""
    return ShardRows(folder, epochs) if (folder / FACTS).exists() else Rows(folder)


def check(out: pathlib.Path, samples) -> str:
    """Reads every shard that is there; compares with the samples if they are given."""
    read, begin, seen = ShardRows(out), 0, 0
    rows = Rows(samples) if samples else None
    for number, shard in enumerate(read.shards):
        if (out / shard["file"]).exists():
            tokens = read.load(number)
            seen += len(tokens)
            if rows is not None and not (tokens == rows.first(begin, len(tokens))).all():
                raise TrainingError(f"{out / shard['file']}: has other tokens than {samples}")
        begin += shard["rows"]
    size = sum(shard["bytes"] for shard in read.shards)
    tokens = read.count * (read.context + 1)
    return (f"{out}: {len(read.shards)} shards, {read.count} rows of {read.context} tokens ({tokens / 1e6:.1f} M), {size / 1e6:.1f} MB, "
            f"{8 * size / tokens:.2f} bits a token; {seen} rows read and right")


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training shards", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=pathlib.Path, help="a folder that `samples` wrote")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--shard-bytes", type=int, default=SHARD_BYTES)
    parser.add_argument("--shards-max", type=int, default=1 << 20, help="leave the samples behind these out")
    parser.add_argument("--check", action="store_true", help="write nothing, read what is there")
    options = parser.parse_args(words)
    if not options.check:
        if options.samples is None:
            parser.error("--samples is wanted")
        write(options.samples, options.out, options.shard_bytes, options.shards_max,
              lambda shard: print(f"{shard['file']}: {shard['rows']} rows, {shard['bytes'] / 1e6:.1f} MB", flush=True))
    print(check(options.out, options.samples))
    return 0

"""What is in another process's memory; for root, or of an own child."""

import itertools
import re
import sys

kSampleBytes = 64
kChunkBytes = 16 << 20
kZeros = bytes(1 << 12)


def memory_of(pid):
    """All that the process has written to, in pieces that overlap by a sample."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            begin, end, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if not rights.startswith("rw"):
                continue
            at, end = int(begin, 16), int(end, 16)
            while at < end:
                memory.seek(at)
                try:
                    piece = memory.read(min(kChunkBytes, end - at))
                except OSError:  # a device's, or one that is gone
                    break
                if not piece:
                    break
                yield piece
                at += len(piece) if at + len(piece) >= end else max(len(piece) - kSampleBytes, 1)


def written_parts(piece):
    """What of the piece is not zero, in blocks, each run of them with a sample's length around it. Most of a reserve is zero."""
    begin = None
    for at in range(0, len(piece), len(kZeros)):
        block = piece[at:at + len(kZeros)]
        if block == kZeros:
            if begin is not None:
                yield piece[begin:at + kSampleBytes]
            begin = None
        elif begin is None:
            begin = max(at - kSampleBytes, 0)
    if begin is not None:
        yield piece[begin:]


def count_in(pieces, samples):
    """How many of the samples, which are not all zeros, are in one of the pieces, at a multiple of 8."""
    wanted = set(samples)
    first_words = {int.from_bytes(sample[:8], sys.byteorder) for sample in wanted}
    found = set()
    for part in itertools.chain.from_iterable(map(written_parts, pieces)):
        words = memoryview(part[:len(part) // 8 * 8]).cast("Q")
        found.update(part[8 * at:8 * at + kSampleBytes] for at, word in enumerate(words) if word in first_words)
    return len(found & wanted)

"""Splits a file into pieces that a machine with narrow doors gives back, and joins them again: a checkpoint, a GGUF.

    python3 -m training pieces --split FILE --out FOLDER [--first 0 --count 4]
    python3 -m training pieces --join FOLDER --out FILE

A piece has 16 MiB at most. --first and --count write some of them alone, where a call gives back only so many; the folders of several
calls are copied together. pieces.json, which each call writes, has the whole file's digest and every piece's.
"""
import argparse
import hashlib
import json
import pathlib

from training.errors import TrainingError
from training.files import whole_file

PIECE_BYTES = (16 << 20) - 4096
FACTS = "pieces.json"
FORMAT = "efim-pieces 1"


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def name_of(number: int) -> str:
    return f"piece-{number:03}"


def split(path: pathlib.Path, out: pathlib.Path, first: int = 0, count: int = 1 << 30, piece_bytes: int = PIECE_BYTES) -> dict:
    whole, pieces = hashlib.blake2b(digest_size=16), []
    with open(path, "rb") as file:
        while data := file.read(piece_bytes):
            whole.update(data)
            if first <= len(pieces) < first + count:
                with whole_file(out / name_of(len(pieces))) as piece:
                    piece.write(data)
            pieces.append({"bytes": len(data), "digest": digest(data)})
    facts = {"format": FORMAT, "file": path.name, "digest": whole.hexdigest(), "pieces": pieces}
    with whole_file(out / FACTS, "w") as file:
        json.dump(facts, file)
    return facts


def join(folder: pathlib.Path, out: pathlib.Path) -> dict:
    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        wanted, pieces = facts["digest"], facts["pieces"]
        if facts["format"] != FORMAT:
            raise ValueError("of another format")
    except FileNotFoundError as error:
        raise TrainingError(f"{folder / FACTS}: is missing; `pieces --split` writes it") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{folder / FACTS}: is no list of pieces: {error}") from error
    missing = [name_of(number) for number in range(len(pieces)) if not (folder / name_of(number)).exists()]
    if missing:
        raise TrainingError(f"{folder}: {len(missing)} of {len(pieces)} pieces are missing, {missing[0]} is the first")
    whole = hashlib.blake2b(digest_size=16)
    with whole_file(out) as file:
        for number, piece in enumerate(pieces):
            data = (folder / name_of(number)).read_bytes()
            if digest(data) != piece["digest"]:
                raise TrainingError(f"{folder / name_of(number)}: is damaged or of another file; fetch it again")
            whole.update(data)
            file.write(data)
        if whole.hexdigest() != wanted:
            raise TrainingError(f"{folder}: the pieces are not those of one file")
    return facts


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training pieces", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--split", type=pathlib.Path, metavar="FILE")
    what.add_argument("--join", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1 << 30)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args(words)
    facts = split(options.split, options.out, options.first, options.count) if options.split else join(options.join, options.out)
    print(f"{options.out}: {len(facts['pieces'])} pieces, {sum(piece['bytes'] for piece in facts['pieces']) / 1e6:.1f} MB")
    return 0

"""Collects source code from the packages of a list, cleans it, drops near duplicates, splits it by package.

Writes train.jsonl, validation.jsonl and test.jsonl, a file a line: {"package", "licence", "language", "path", "text"}; and
manifest.json: versions, licences, sizes by language and licence, and what was left out and why. Nothing of a test package reaches
training. Packages are split whole, and the lines of test files and of packages that are kept for judging count as seen first, so that
a copy elsewhere is dropped there.

OUT/parts has each package's cleaned files (package_parts.py): what is there is not fetched or cleaned again, so that a stopped
command goes on, and a longer list costs what was added to it.
"""
import argparse
import collections
import dataclasses
import json
import pathlib
import re
import sys

from training import clean, package_parts
from training.errors import TrainingError
from training.files import whole_file

SPLITS = ("kept", "test", "validation", "train")  # in this order lines count as seen; of "kept" nothing is written
WRITTEN = SPLITS[1:]
KINDS = ("deb", "source", "npm", "folder")
PERMISSIVE = {
    "MIT", "ISC", "Zlib", "curl", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "BSL-1.0", "PSF-2.0", "PostgreSQL", "Unlicense", "CC0-1.0",
    "MIT-or-Apache-2.0",
}
OWN = "own"  # the licence of a folder whose code is the user's
COMMENT = re.compile(r"(?:^|\s)#.*")
LINE = re.compile(r"(\S+)\s+(\S.*?)\s+(\S+)\s+(\S+)")  # KIND NAME LICENCE SPLIT; a folder's name may have blanks
PACKAGE_BYTES_MAX = 12_000_000  # of one package, so that none drowns the others
GROUP_FILES = 30  # of a large package stay or go together


@dataclasses.dataclass(frozen=True)
class Package:
    kind: str
    name: str
    licence: str
    split: str


def read_list(path: pathlib.Path) -> list:
    packages = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise TrainingError(f"{path}: is no UTF-8 text: {error}") from error
    for number, line in enumerate(lines, 1):
        line = COMMENT.sub("", line).strip()
        if line:
            packages.append(package_of(line, f"{path}:{number}"))
    seen = collections.Counter(package.name for package in packages)
    for name, count in seen.items():
        if count > 1:
            raise TrainingError(f"{path}: {name} stands there {count} times; a package has one split")
    return packages


def package_of(line: str, where: str) -> Package:
    words = LINE.fullmatch(line)
    if words is None or words[1] != "folder" and len(line.split()) != 4:
        raise TrainingError(f"{where}: expected KIND NAME LICENCE SPLIT, found {len(line.split())} words")
    package = Package(*words.groups())
    for value, allowed, what in ((package.kind, KINDS, "kind"), (package.split, SPLITS, "split")):
        if value not in allowed:
            raise TrainingError(f"{where}: {what} '{value}' is none of {', '.join(allowed)}")
    is_own = package.kind == "folder" and package.licence == OWN
    if package.licence not in PERMISSIVE and not is_own and package.split != "kept":
        raise TrainingError(f"{where}: '{package.licence}' is no permissive licence known here ({', '.join(sorted(PERMISSIVE))}); a folder "
                            f"of your own code has '{OWN}'")
    return package


def thinned(sizes: list, bytes_max: int) -> list:
    """Which of the files stay where they are too many: evenly, every n-th group of files that stand beside each other, for these
    import each other."""
    keep = min(1.0, bytes_max / max(sum(sizes), 1))
    return [int((number // GROUP_FILES + 1) * keep) > int(number // GROUP_FILES * keep) for number in range(len(sizes))]


def new_files(part: package_parts.Part, seen: clean.SeenLines, dropped: collections.Counter) -> list:
    """The part's lines that are no near duplicates, as (offset, bytes, language, bytes of text)."""
    out = []
    for offset, size, record in part.records():
        if seen.mostly_seen(record["text"]):
            dropped["near duplicate"] += 1
        else:
            out.append((offset, size, record["language"], len(record["text"].encode())))
    return out


@dataclasses.dataclass
class Builder:
    """Puts the parts of all packages together."""

    parts: dict  # package -> package_parts.Part
    out: pathlib.Path
    bytes_max: int

    def __post_init__(self):
        self.seen, self.dropped, self.manifest = clean.SeenLines(), collections.Counter(), []
        self.bytes_of = {split: collections.Counter() for split in WRITTEN}
        self.of_licence = collections.Counter()

    def write(self, split: str, file, report) -> None:
        for package, part in self.parts.items():
            if package.split != split:
                continue
            files = new_files(part, self.seen, self.dropped)
            self.dropped.update(part.dropped)
            if file is None:
                continue
            stay = thinned([size for *_, size in files], self.bytes_max)
            self.dropped["the package is large"] += stay.count(False)
            size = self.copy(part, [of_file for of_file, stays in zip(files, stay) if stays], split, file)
            self.of_licence[package.licence] += size if split == "train" else 0
            report(f"{split:<10} {package.name}: {size / 1e6:.2f} MB")
            self.manifest.append({**dataclasses.asdict(package), "version": part.version, "bytes": size})

    def copy(self, part, files: list, split: str, file) -> int:
        with open(part.path, "rb") as source:
            for offset, size, language, text_bytes in files:
                source.seek(offset)
                file.write(source.read(size))
                self.bytes_of[split][language] += text_bytes
        return sum(text_bytes for *_, text_bytes in files)

    def build(self, report) -> dict:
        self.write("kept", None, report)
        for split in WRITTEN:
            with whole_file(self.out / f"{split}.jsonl") as file:
                self.write(split, file, report)
        if not self.bytes_of["train"]:
            raise TrainingError("the corpus is empty: no package of the list gave a file to train on; left out: "
                                + (", ".join(f"{count} x {why}" for why, count in (+self.dropped).items()) or "nothing, there were none"))
        result = {"packages": self.manifest, "bytes": self.bytes_of, "bytes_of_licence": self.of_licence, "left_out": +self.dropped}
        with whole_file(self.out / "manifest.json", "w") as file:
            json.dump(result, file, indent=1)
        return result


def records(corpus: pathlib.Path, split: str):
    """The files of a split. The corpus is not held in memory."""
    return (record for record, _ in sized_records(corpus, split))


def sized_records(corpus: pathlib.Path, split: str):
    """(record, bytes of its line) of each file."""
    path = corpus / f"{split}.jsonl"
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    record = json.loads(line.decode())
                    yield {key: record[key] for key in ("package", "licence", "language", "path", "text")}, len(line)
                except UnicodeDecodeError:
                    raise
                except (ValueError, KeyError, TypeError) as error:
                    raise TrainingError(f"{path}:{number}: is no record of a corpus: {error}") from error
    except FileNotFoundError as error:
        raise TrainingError(f"{path}: is missing; make the corpus first: python3 -m training corpus") from error
    except UnicodeDecodeError as error:
        raise TrainingError(f"{path}: is no text: {error}") from error


class Files:
    """The files of a split by their number: offsets are in memory, texts are not."""

    def __init__(self, corpus: pathlib.Path, split: str):
        self._file, self._offsets, self.packages, self.paths, self.sizes = None, [], [], [], []
        offset = 0
        for record, size in sized_records(corpus, split):
            self._offsets.append(offset)
            self.packages.append(record["package"])
            self.paths.append(record["path"])
            self.sizes.append(len(record["text"]))
            offset += size
        self._path = corpus / f"{split}.jsonl"

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, number: int) -> dict:
        if self._file is None:
            self._file = open(self._path, "rb")
        self._file.seek(self._offsets[number])
        return json.loads(self._file.readline())


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training corpus", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", type=pathlib.Path, default=pathlib.Path(__file__).with_name("packages.txt"))
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the corpus and what was downloaded")
    parser.add_argument("--jobs", type=int, default=2, help="packages that are fetched and cleaned at a time")
    parser.add_argument("--package-bytes", type=int, default=PACKAGE_BYTES_MAX, help="of one package at most, the largest are thinned evenly")
    parser.add_argument("--keep-downloads", action="store_true", help="else a package's archives are deleted once it is cleaned")
    parser.add_argument("--without-missing", action="store_true", help="go on without packages that cannot be had")
    options = parser.parse_args(words)
    report = lambda line: print(line, file=sys.stderr, flush=True)
    parts = package_parts.collect(read_list(options.list), options.out, options.jobs, options.keep_downloads,
                                  options.without_missing, report)
    result = Builder(parts, options.out, options.package_bytes).build(report)
    for split in reversed(WRITTEN):
        languages = result["bytes"][split].most_common()
        print(f"{split:<10} {sum(size for _, size in languages) / 1e6:7.2f} MB  "
              + "  ".join(f"{name} {size / 1e6:.2f}" for name, size in languages))
    print("licences   " + "  ".join(f"{name} {size / 1e6:.2f}" for name, size in result["bytes_of_licence"].most_common()))
    print("left out   " + "  ".join(f"{why}: {count}" for why, count in sorted(result["left_out"].items())))
    return 0

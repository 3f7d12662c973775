"""Collects source code from the packages of a list, cleans it, drops near duplicates, splits it by package.

Writes train.jsonl, validation.jsonl and test.jsonl, a file a line: {"package", "licence", "language", "path", "text"}; and
manifest.json: versions, licences, and what was left out and why. Nothing of a test package reaches training. Packages are split
whole, and the lines of test files count as seen first, so that a copy elsewhere is dropped there.
"""
import argparse
import collections
import dataclasses
import json
import pathlib
import sys

from training import clean, fetch
from training.errors import TrainingError
from training.files import whole_file

SPLITS = ("test", "validation", "train")  # in this order lines count as seen
KINDS = ("deb", "source", "npm", "folder")
PERMISSIVE = {
    "MIT", "ISC", "Zlib", "curl", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "BSL-1.0", "PSF-2.0", "Unlicense", "CC0-1.0",
    "MIT-or-Apache-2.0",
}
LANGUAGES = {
    ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp", ".ipp": "cpp", ".py": "python",
    ".go": "go", ".rs": "rust", ".ts": "typescript", ".tsx": "typescript", ".js": "typescript", ".mjs": "typescript",
    ".jsx": "typescript",
}
# Code of others, whose licence may be another; and what nobody wrote by hand.
FOREIGN = {"vendor", "third_party", "third-party", "thirdparty", "node_modules", "deps", "bundled", "extern", "external", "_vendor",
           "dist", "build", "min", "umd", "generated", "testdata", "locale", "i18n", "_esm5", "_esm2015", "esm5", "esm2015"}
FILE_BYTES_MAX = 100_000  # larger ones are mostly tables
PACKAGE_BYTES_MAX = 3_000_000  # of one package, so that none drowns the others


@dataclasses.dataclass(frozen=True)
class Package:
    kind: str
    name: str
    licence: str
    split: str


def read_list(path: pathlib.Path) -> list:
    packages = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split()
        if words:
            packages.append(package_of(words, f"{path}:{number}"))
    seen = collections.Counter(package.name for package in packages)
    for name, count in seen.items():
        if count > 1:
            raise TrainingError(f"{path}: {name} stands there {count} times; a package has one split")
    return packages


def package_of(words: list, where: str) -> Package:
    if len(words) != 4:
        raise TrainingError(f"{where}: expected KIND NAME LICENCE SPLIT, found {len(words)} words")
    package = Package(*words)
    for value, allowed, what in ((package.kind, KINDS, "kind"), (package.split, SPLITS, "split")):
        if value not in allowed:
            raise TrainingError(f"{where}: {what} '{value}' is none of {', '.join(allowed)}")
    if package.licence not in PERMISSIVE:
        raise TrainingError(f"{where}: '{package.licence}' is no permissive licence known here ({', '.join(sorted(PERMISSIVE))})")
    return package


def language_of(path: str):
    """None if the path is no source file of ours, by its ending or by a folder in it."""
    parts = pathlib.PurePosixPath(path).parts
    if any(part.lower() in FOREIGN for part in parts[:-1]) or ".min." in parts[-1]:
        return None
    return LANGUAGES.get(pathlib.PurePosixPath(path).suffix)


def files_of(package: Package, downloads: pathlib.Path):
    """(path, bytes, version) of each source file, in an order that does not depend on the machine."""
    if package.kind == "folder":
        yield from folder_files(pathlib.Path(package.name))
        return
    with fetch.package_tars(package.kind, package.name, downloads) as tars:
        for tar, version in tars:
            for member in tar:
                if member.isfile() and member.size <= FILE_BYTES_MAX and language_of(member.name):
                    yield member.name, tar.extractfile(member).read(), version


def folder_files(folder: pathlib.Path):
    if not folder.is_dir():
        raise TrainingError(f"{folder}: is no folder")
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        if language_of(inside) and path.is_file() and path.stat().st_size <= FILE_BYTES_MAX:
            yield inside, path.read_bytes(), ""


def collect(package: Package, downloads: pathlib.Path, seen: clean.SeenLines, dropped: collections.Counter):
    """Yields the package's records, up to PACKAGE_BYTES_MAX. Larger packages are thinned evenly: of many files, every n-th."""
    records = []
    for path, raw, version in files_of(package, downloads):
        text, fault = clean.cleaned(raw)
        if fault is None and seen.mostly_seen(text):
            fault = "near duplicate"
        if fault is not None:
            dropped[fault] += 1
            continue
        records.append({"package": package.name, "version": version, "licence": package.licence,
                        "language": language_of(path), "path": path.removeprefix("./"), "text": text})
    total = sum(len(record["text"]) for record in records)
    keep = min(1.0, PACKAGE_BYTES_MAX / max(total, 1))
    for number, record in enumerate(records):
        if int((number + 1) * keep) > int(number * keep):
            yield record
        else:
            dropped["the package is large"] += 1


def build(packages: list, out: pathlib.Path, report) -> dict:
    downloads = out / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    seen, dropped, manifest = clean.SeenLines(), collections.Counter(), []
    bytes_of = {split: collections.Counter() for split in SPLITS}
    for split in SPLITS:
        with whole_file(out / f"{split}.jsonl", "w") as file:
            for package in (package for package in packages if package.split == split):
                before, versions = sum(bytes_of[split].values()), set()
                for record in collect(package, downloads, seen, dropped):
                    bytes_of[split][record["language"]] += len(record["text"].encode())
                    versions.add(record.pop("version"))
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
                size = sum(bytes_of[split].values()) - before
                report(f"{split:<10} {package.name}: {size / 1e6:.2f} MB")
                manifest.append({**dataclasses.asdict(package), "version": " ".join(sorted(versions)), "bytes": size})
    if not bytes_of["train"]:
        raise TrainingError("the corpus is empty: no package of the list gave a file to train on; left out: "
                            + (", ".join(f"{count} x {why}" for why, count in dropped.items()) or "nothing, there were none"))
    result = {"packages": manifest, "bytes": bytes_of, "left_out": dropped}
    with whole_file(out / "manifest.json", "w") as file:
        json.dump(result, file, indent=1)
    return result


def records(corpus: pathlib.Path, split: str):
    """The files of a split. The corpus is not held in memory."""
    path = corpus / f"{split}.jsonl"
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    record = json.loads(line)
                    yield {key: record[key] for key in ("package", "licence", "language", "path", "text")}
                except (ValueError, KeyError, TypeError) as error:
                    raise TrainingError(f"{path}:{number}: is no record of a corpus: {error}") from error
    except FileNotFoundError as error:
        raise TrainingError(f"{path}: is missing; make the corpus first: python3 -m training corpus") from error
    except UnicodeDecodeError as error:
        raise TrainingError(f"{path}: is no text: {error}") from error


def main(words: list) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m training corpus", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", type=pathlib.Path, default=pathlib.Path(__file__).with_name("packages.txt"))
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the corpus and what was downloaded")
    options = parser.parse_args(words)
    result = build(read_list(options.list), options.out, lambda line: print(line, file=sys.stderr, flush=True))
    for split in reversed(SPLITS):
        languages = result["bytes"][split].most_common()
        print(f"{split:<10} {sum(size for _, size in languages) / 1e6:7.2f} MB  "
              + "  ".join(f"{name} {size / 1e6:.2f}" for name, size in languages))
    print("left out   " + "  ".join(f"{why}: {count}" for why, count in sorted(result["left_out"].items())))
    return 0

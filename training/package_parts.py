"""The cleaned files of each package, in a file of its own: OUT/parts/KIND-NAME.jsonl. The first line says of what it is made; the
others are the corpus's records. A part that is there is taken as it is, so that a stopped collection goes on where it stopped.
"""
import collections
import concurrent.futures
import dataclasses
import functools
import json
import pathlib
import random
import shutil
import tarfile

from training import clean, fetch
from training.errors import TrainingError
from training.files import whole_file
from training.languages import language_of

FORMAT = 3  # of parts; another one when cleaning changes what is kept
FILE_BYTES_MAX = 100_000  # larger ones are mostly tables


@dataclasses.dataclass
class Part:
    """A package's cleaned files on disk."""

    path: pathlib.Path
    version: str
    dropped: collections.Counter

    def records(self):
        """(offset, bytes, record) of each line."""
        with open(self.path, "rb") as file:
            offset = len(file.readline())
            for line in file:
                yield offset, len(line), json.loads(line)
                offset += len(line)


def head_of(package) -> dict:
    return {"format": FORMAT, "package": package.name, "licence": package.licence, "whole": is_kept(package)}


def is_kept(package) -> bool:
    """Kept for judging: all of it counts as seen, also what it builds (some packages of npm have nothing else) and bundles."""
    return package.split == "kept"


def path_of(package, out: pathlib.Path) -> pathlib.Path:
    return out / "parts" / f"{package.kind}-{package.name.strip('/').replace('/', '-')}.jsonl"


def opened(package, out: pathlib.Path):
    """The part that is there; None if there is none, or one of other rules."""
    path = path_of(package, out)
    try:
        with open(path, encoding="utf-8") as file:
            head = json.loads(file.readline())
            if {key: head.get(key) for key in head_of(package)} == head_of(package):
                return Part(path, head["version"], collections.Counter(head["dropped"]))
    except (FileNotFoundError, ValueError, KeyError):
        pass
    return None


def files_of(package, downloads: pathlib.Path):
    """(path, bytes, version) of each source file, in an order that does not depend on the machine."""
    if package.kind == "folder":
        yield from folder_files(pathlib.Path(package.name).expanduser(), is_kept(package))
        return
    try:
        with fetch.package_tars(package.kind, package.name, downloads) as tars:
            for tar, version in tars:
                for member in tar:
                    if member.isfile() and member.size <= FILE_BYTES_MAX and language_of(member.name, is_kept(package)):
                        yield member.name, tar.extractfile(member).read(), version
    except tarfile.TarError as error:
        place = fetch.place_of(package.kind, package.name, downloads)
        raise TrainingError(f"{place}: has a damaged archive ({error}); remove this folder, and the same command fetches it again") from error


def folder_files(folder: pathlib.Path, foreign_too: bool):
    if not folder.is_dir():
        raise TrainingError(f"{folder}: is no folder")
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        if language_of(inside, foreign_too) and path.is_file() and path.stat().st_size <= FILE_BYTES_MAX:
            yield inside, path.read_bytes(), ""


def made(package, out: pathlib.Path, keep_downloads: bool) -> Part:
    """Fetches the package and writes its part."""
    downloads = out / "downloads"
    dropped, versions, lines = collections.Counter(), set(), []
    for path, raw, version in files_of(package, downloads):
        text, fault = clean.cleaned(raw, is_own=package.licence == "own")
        if fault is not None:
            dropped[fault] += 1
            continue
        versions.add(version)
        lines.append(json.dumps({"package": package.name, "licence": package.licence, "language": language_of(path, is_kept(package)),
                                 "path": path.removeprefix("./"), "text": text}, ensure_ascii=False).encode() + b"\n")
    head = {**head_of(package), "version": " ".join(sorted(versions)), "dropped": dropped}
    with whole_file(path_of(package, out)) as file:
        file.write(json.dumps(head).encode() + b"\n")
        file.writelines(lines)
    if package.kind != "folder" and not keep_downloads:
        shutil.rmtree(fetch.place_of(package.kind, package.name, downloads), ignore_errors=True)
    return Part(path_of(package, out), head["version"], dropped)


def made_or_fault(package, out: pathlib.Path, keep_downloads: bool):
    try:
        return made(package, out, keep_downloads)
    except TrainingError as error:
        return str(error)
    except (OSError, EOFError, ValueError) as error:  # a damaged archive
        return f"{package.name}: {error}"


def collect(packages: list, out: pathlib.Path, jobs: int, keep_downloads: bool, without_missing: bool, report) -> dict:
    """package -> Part, in the list's order."""
    parts = {package: None if package.kind == "folder" else opened(package, out) for package in packages}
    missing = [package for package, part in parts.items() if part is None]
    random.Random(1).shuffle(missing)  # what a stopped collection has is a mixture of all languages
    (out / "downloads").mkdir(parents=True, exist_ok=True)
    faults = []
    sources = [package for package in missing if package.kind == "source"]
    try:
        if sources:
            fetch.source_options(out / "downloads", renewed=True)  # once, before many ask for it
    except TrainingError as error:
        report(f"no source package can be fetched: {error}")
        there = lambda package: fetch.place_of(package.kind, package.name, out / "downloads").exists()
        faults = [f"{package.name}: {error}" for package in sources if not there(package)]
        missing = [package for package in missing if package.kind != "source" or there(package)]
    make = functools.partial(made_or_fault, out=out, keep_downloads=keep_downloads)
    with concurrent.futures.ProcessPoolExecutor(max(1, jobs)) as pool:
        results = map(make, missing) if jobs <= 1 or len(missing) < 8 else pool.map(make, missing)
        for number, (package, result) in enumerate(zip(missing, results), 1):
            parts[package] = result
            if isinstance(result, str):
                faults.append(result)
            report(f"{number} of {len(missing)}: {package.name}{': ' + result if isinstance(result, str) else ''}")
    if faults and not without_missing:
        raise TrainingError(f"{len(faults)} of {len(packages)} packages cannot be had; the same command goes on with them, "
                            f"--without-missing without them. The first: {faults[0]}")
    return {package: part for package, part in parts.items() if isinstance(part, Part)}

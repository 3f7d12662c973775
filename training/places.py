"""What the daemon shows with a model alone, without recall, at cursors in whole projects: efimd-bench places over the test packages,
unpacked. This is the product's own judgement, of when to be silent too; evaluate.py's other kinds measure what the model writes.

Inside of lines and at line starts the rest of the line was taken away; at finished lines nothing is missing, and silence is right.
"""
import hashlib
import json
import pathlib

from training import corpus, measures
from training.errors import TrainingError
from training.files import whole_file

TITLES = {"inside": "inside of lines", "start": "at line starts", "finished": "at finished lines"}


def unpacked(corpus_folder: pathlib.Path, out: pathlib.Path) -> list:
    """A folder for each test package, below one of the corpus: of another corpus nothing is left in it."""
    test = corpus_folder / "test.jsonl"
    out = out / hashlib.blake2b(test.read_bytes() if test.exists() else b"", digest_size=8).hexdigest()
    folders = {}  # by package
    for record in corpus.records(corpus_folder, "test"):
        package = record["package"]
        if package not in folders:
            name = pathlib.PurePosixPath(package.strip("/")).name
            taken = any(folder.name == name for folder in folders.values())
            folders[package] = out / (f"{name}-{len(folders)}" if taken else name)
        folder = folders[package]
        path = folder / record["path"].lstrip("/")
        if ".." in path.parts:
            raise TrainingError(f"{corpus_folder}: {record['path']} leads out of its package")
        if not path.exists():
            with whole_file(path, "w") as file:
                file.write(record["text"])
    if not folders:
        raise TrainingError(f"{corpus_folder}: has no test files; give a package of its list the split 'test'")
    return list(folders.values())


def measured(run, folders: list, cursors: int, seed: int) -> dict:
    """kind -> numbers of efimd-bench, over all projects together. `run` gives efimd-bench's output for its words."""
    count = max(1, -(-cursors // len(folders)))
    said = run(["places", *map(str, folders), "--count", str(count), "--seed", str(seed), "--alone", "--json"])
    try:
        return {row["cursorKind"]: row for row in json.loads(said)["places"] if row["recall"] == "without"}
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"efimd-bench places: said what is not known here: {error}") from error


def share(part: int, whole: int) -> str:
    low, high = measures.wilson(part, whole)
    return f"{100 * part / whole:.1f} ({100 * low:.1f}-{100 * high:.1f})" if whole else "-"


def row(name: str, of_kind: dict) -> str:
    cells = [name]
    for kind in ("inside", "start"):
        of = of_kind[kind]
        saved = 100 * of["savedChars"] / of["chars"] if of["chars"] else 0.0
        cells += [share(of["shown"], of["cursors"]), share(of["exact"], of["cursors"]), f"{saved:.1f}"]
    finished = of_kind["finished"]
    cells += [share(finished["cursors"] - finished["shown"], finished["cursors"]), f"{of_kind['inside']['msP50']:.0f}"]
    return "| " + " | ".join(cells) + " |"


def table(results: dict) -> str:
    count = next(iter(results.values()))["inside"]["cursors"]
    head = [f"**{count} places of each kind: what efimd shows with the model alone**", "",
            "| | inside: shown, % | exact, % | characters, % | line starts: shown, % | exact, % | characters, % | quiet at finished lines, % | ms |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    return "\n".join(head + [row(name, result) for name, result in results.items()]) + "\n"

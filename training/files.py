"""Files that are there whole or not at all; and JSON that may be damaged."""
import contextlib
import json
import os
import pathlib

from training.errors import TrainingError


def json_object(path: pathlib.Path, missing=None) -> dict:
    """The object that a file holds; `missing` if there is no such file, unless that is None."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if missing is not None:
            return missing
        raise
    except ValueError as error:
        raise TrainingError(f"{path}: is no JSON: {error}; get it again") from error
    if not isinstance(found, dict):
        raise TrainingError(f"{path}: is no JSON object; get it again")
    return found


@contextlib.contextmanager
def whole_file(path, mode: str = "wb"):
    """A file to write beside `path`, which takes its place once it is written and synced. When anything fails, a full disk
    say, what was at `path` stays and nothing else is left."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    try:
        with open(beside, mode, **({} if "b" in mode else {"encoding": "utf-8"})) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise

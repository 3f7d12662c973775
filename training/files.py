"""Files that are there whole or not at all."""
import contextlib
import os
import pathlib


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

"""What README.md and docs/ name: commands, files, functions. Read by the tests of this folder."""

import pathlib
import re

kPages = ["README.md", "CONTRIBUTING.md", "docs/*.md"]

kLink = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
kPath = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:h|cpp|cu|comp|py|md|mjs|svg|gguf))`")
# A station of a keystroke's way: a function, and the file that it is in.
kStation = re.compile(r"`?\b((?:[A-Za-z_]+::)*[A-Za-z_]+)(?:` \| `|  +)((?:[a-z_]+/)+[a-z_]+\.cpp)\b")


def pages(root):
    """The paths of README.md, CONTRIBUTING.md and docs/, relative to `root`."""
    root = pathlib.Path(root)
    return sorted(path.relative_to(root).as_posix() for pattern in kPages for path in root.glob(pattern))


def text_of(root, page):
    return pathlib.Path(root, page).read_text(encoding="utf-8")


def shell_lines(text):
    """(command, comment) of each line in the page's ```sh blocks."""
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for line in filter(str.strip, block.splitlines()):
            command, _, comment = line.partition(" # ")
            yield command.strip(), comment.strip()


def missing_files(root, page):
    """The files that the page links to, or names in backticks, and that are not there."""
    root, text = pathlib.Path(root), text_of(root, page)
    linked = [(name, (root / page).parent / name) for name in kLink.findall(text)]
    named = [(name, root / name) for name in kPath.findall(text)]
    return sorted({name for name, file in linked + named if not file.exists()})


def stations(text):
    """(function, file) of each station that a page lists."""
    return kStation.findall(text)


def has_function(root, function, file):
    """Whether the file defines the function: a class's function by its full name, else any."""
    path = pathlib.Path(root, file)
    return path.is_file() and re.search(rf"(?<![\w:]){re.escape(function.removeprefix('prompt::'))}\(",
                                        path.read_text(encoding="utf-8")) is not None

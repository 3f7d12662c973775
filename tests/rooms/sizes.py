"""What a reader can take in at once: lines of a file, units of a folder, words of a header's sentence."""

import collections
import pathlib
import re
import subprocess

kProductLinesMax = 350
kTestLinesMax = 500
kUnitsMax = 16
kWordsMax = 30

kCode = {".h", ".cpp", ".cu", ".cuh", ".comp", ".glsl"}
kTestCode = kCode | {".py", ".mjs", ".c"}
kProduct = {"base", "cache_store", "daemon", "engine", "kernels", "lsp", "net", "shaders"}
# One file for each operation.
kLargeFolders = {"kernels", "shaders"}

kComment = re.compile(r"^\s*///? (\S.*)$|\s///< (\S.*)$")
# A row of a table or a formula has gaps; two blanks after a full stop are none.
kGap = re.compile(r"(?<![.:;])\s{2,}\S")
kWord = re.compile(r"[A-Za-z0-9_]\S*")
kEnd = re.compile(r"(?<=[.!?])\s+")


def tracked(root):
    """The files that git has, relative to `root`."""
    listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout
    return [pathlib.PurePosixPath(name) for name in listed.splitlines()]


def lines_max(path):
    """The limit of a file's lines; None if it has none."""
    room = path.parts[0]
    if room in kProduct and path.suffix in kCode:
        return kProductLinesMax
    return kTestLinesMax if room == "tests" and path.suffix in kTestCode else None


def long_files(root, paths):
    """(path, lines) of each file over its limit."""
    for path in paths:
        limit = lines_max(path)
        lines = len(pathlib.Path(root, path).read_text(encoding="utf-8").splitlines()) if limit else 0
        if limit and lines > limit:
            yield str(path), lines


def full_folders(paths):
    """(folder, units) of each folder of the product with too many units: a header and the sources of its name are one."""
    units = collections.defaultdict(set)
    for path in paths:
        if path.parts[0] in kProduct and path.suffix in kCode:
            units[str(path.parent)].add(path.stem)
    return [(folder, len(names)) for folder, names in sorted(units.items())
            if len(names) > kUnitsMax and folder not in kLargeFolders]


def sentences(text):
    """(line, sentence) of the prose in the comments of C++: not of tables, formulas and indented lists."""
    prose, begin, trailing = [], 0, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        match = kComment.search(line)
        comment = match and (match[1] or match[2])
        row = comment and kGap.search(comment)
        if prose and (not comment or row or match[2] or trailing):
            yield from ((begin, sentence) for sentence in kEnd.split(" ".join(prose)))
            prose = []
        if comment and not row:
            begin = begin if prose else number
            prose.append(comment)
            trailing = match[2] is not None


def long_sentences(root, paths):
    """"path:line: words: sentence" of each sentence over the limit in the product's headers."""
    for path in paths:
        if path.parts[0] in kProduct and path.suffix == ".h":
            for line, sentence in sentences(pathlib.Path(root, path).read_text(encoding="utf-8")):
                words = len(kWord.findall(re.sub(r"`[^`]*`", "code", sentence)))
                if words > kWordsMax:
                    yield f"{path}:{line}: {words}: {sentence}"

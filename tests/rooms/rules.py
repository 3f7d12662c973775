"""The numbered rules of the tree (`A-n`, `KV-n`, ...): where each is defined, and where it is cited.

A rule is defined once, in one of two forms:

    - **A-n** An edit inside ...        an item of a list, in a Markdown file
    //   KV-n  A page is evicted ...    the first word of a comment's line, with two blanks or more after it

Anything else that looks like a rule's name is a citation. Named Markdown files are read, too: each must be there.
"""

import collections
import os
import pathlib
import re

# The families of rules. docs/efim.md says where each is defined.
kFamilies = {"A", "BR", "C", "D", "F", "G", "H", "I", "KV", "R", "S", "SR", "ST", "W"}
# What looks like a rule's name and is none: encodings, licences, models, processors.
kOthers = {"BSD", "BSL", "GPL", "GPT", "LGPL", "MIT", "PSF", "SHA", "UTF"}

kSources = {".h", ".cpp", ".cu", ".cuh", ".comp", ".glsl", ".py", ".md", ".ts", ".mjs", ".lua", ".cmake", ".txt"}
# Their trees are made up, and so are the rules and files in them.
kMadeUp = {"tests/rooms/rules_test.py", "tests/rooms/docs_test.py"}
kSkipped = {"build", "node_modules", "out", "dist", "__pycache__"}

kRule = re.compile(r"(?<![\w.-])([A-Z]{1,4})-(\d{1,2})(?![\w-])")
kListed = re.compile(r"- \*\*([A-Z]{1,4}-\d{1,2})\*\* \S")
kAtHead = re.compile(r"\s*(?://+|#)\s+([A-Z]{1,4}-\d{1,2})\s{2,}\S")
kMarkdown = re.compile(r"(?<![\w./-])((?:\.\./|[\w-]+/)*[\w-]+\.md)\b")
kComment = re.compile(r"(?:^|\s)//(.*)$")

Place = collections.namedtuple("Place", "path line")


def files_of(root):
    """The files to read, relative to `root`."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders
                            if name not in kSkipped and (not name.startswith(".") or name == ".ci"))
        for name in sorted(names):
            is_text = name != "CMakeLists.txt" and name.endswith(".txt")
            path = pathlib.Path(folder, name).relative_to(root).as_posix()
            if pathlib.Path(name).suffix in kSources and not is_text and path not in kMadeUp:
                yield path


def definition_in(path, line):
    """The rule that this line defines, or None."""
    match = (kListed if path.endswith(".md") else kAtHead).match(line)
    return match[1] if match else None


def read_rules(root):
    """({rule: places of its definitions}, {rule: places where it is named otherwise})."""
    defined, cited = collections.defaultdict(list), collections.defaultdict(list)
    for path in files_of(root):
        for number, line in enumerate(pathlib.Path(root, path).read_text(encoding="utf-8").splitlines(), 1):
            definition = definition_in(path, line)
            if definition:
                defined[definition].append(Place(path, number))
            for family, index in kRule.findall(line):
                rule = f"{family}-{index}"
                if family not in kOthers and rule != definition:
                    cited[rule].append(Place(path, number))
    return defined, cited


def faults_of_rules(root):
    """One line for each rule that is not defined exactly once."""
    defined, cited = read_rules(root)
    faults = []
    for rule in sorted(set(defined) | set(cited)):
        places = defined[rule]
        where = ", ".join(f"{place.path}:{place.line}" for place in places or cited[rule][:3])
        if rule.split("-")[0] not in kFamilies:
            faults.append(f"{where}: {rule} is of no known family: see kFamilies in tests/rooms/rules.py")
        elif len(places) != 1:
            faults.append(f"{where}: {rule} is defined {len(places)} times")
    return faults


def markdown_named(path, line):
    """The Markdown files that a line names: in prose anywhere, in C++ in a comment."""
    if pathlib.Path(path).suffix in {".h", ".cpp", ".cu", ".cuh", ".comp", ".glsl"}:
        comment = kComment.search(line)
        line = comment[1] if comment else ""
    return [match[1] for match in kMarkdown.finditer(re.sub(r"https?://\S+", "", line))]


def faults_of_names(root):
    """One line for each named Markdown file that is neither below `root` nor beside the file that names it."""
    faults = []
    for path in files_of(root):
        file = pathlib.Path(root, path)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for name in markdown_named(path, line):
                if not pathlib.Path(root, name).is_file() and not (file.parent / name).is_file():
                    faults.append(f"{path}:{number}: there is no {name}")
    return faults

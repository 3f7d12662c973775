"""The head of a sample: declarations of the files of the package that a file imports, as the daemon is to put them in front of `before`:
signatures and types without bodies, in import order.

By regular expressions, not by a grammar: it is enough that what stands there looks as the daemon's does and names the right things.
"""
import functools
import posixpath
import re

IMPORTS = {
    "c": re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE),
    "python": re.compile(r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+([.\w]+))", re.MULTILINE),
    "go": re.compile(r'^(?:import[ \t]+|[ \t]+)(?:[\w.]+[ \t]+)?"([\w./-]+)"$', re.MULTILINE),
    "rust": re.compile(r"^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:use[ \t]+((?:crate|super|self)(?:::\w+)+)|mod[ \t]+(\w+);)", re.MULTILINE),
    "typescript": re.compile(r"""(?:^[ \t]*(?:import|export)\b[^;'"\n]*?(?:from[ \t]*)?|\brequire\()['"](\.[^'"\n]+)['"]""", re.MULTILINE),
    "java": re.compile(r"^import[ \t]+(?:static[ \t]+)?([\w.]+)", re.MULTILINE),
    "shell": re.compile(r"^[ \t]*(?:source|\.)[ \t]+[\"']?(?:\$\{?\w+\}?/)?([\w./-]+)", re.MULTILINE),
    "lua": re.compile(r"""\brequire[ \t]*\(?[ \t]*["']([\w./-]+)["']"""),
}
IMPORTS["cpp"] = IMPORTS["c"]
ENDINGS = {"c": ("",), "cpp": ("",), "python": (".py", "/__init__.py"), "rust": (".rs", "/mod.rs"), "java": (".java",), "shell": ("",),
           "lua": (".lua", "/init.lua"), "typescript": ("", ".ts", ".tsx", ".js", ".jsx", ".mjs", "/index.ts", "/index.js"), "go": ()}
INCLUDED_MAX = 6  # files of a head
FILES_OF_GO_MAX = 2  # an import names a folder there
TEXT_MAX = 60_000  # characters of a file that are read for it
SIGNATURE_MAX = 240
FIELDS_MAX = 12  # lines of a type's body

# What declares something, at its line's beginning; deeper lines only as members.
DECLARES = {
    "python": re.compile(r"(?:async[ ]+def|def|class)[ ]+\w"),
    "go": re.compile(r"func\b|type[ ]+\w"),
    "rust": re.compile(r"(?:pub(?:\([^)]*\))?[ ]+)?(?:(?:const|async|unsafe|extern(?:[ ]*\"C\")?)[ ]+)*(?:fn|struct|enum|trait|type|const|static)[ ]+\w|impl\b"),
    "typescript": re.compile(r"(?:export[ ]+)?(?:default[ ]+)?(?:declare[ ]+)?(?:abstract[ ]+)?(?:async[ ]+)?(?:function|class|interface|type|enum)\b"
                             r"|export[ ]+(?:const|let)[ ]+\w|(?:(?:public|private|protected|static|readonly|async|get|set)[ ]+)*[\w$]+\([^;=]*\)[^;=]*\{$"),
    "java": re.compile(r"(?:(?:public|protected|abstract|static|final|default|sealed|synchronized)[ ]+)+[\w<]|(?:class|interface|enum|record)[ ]+\w"),
    "shell": re.compile(r"(?:function[ ]+)?[\w:.-]+[ ]*\(\)|function[ ]+\w"),
    "lua": re.compile(r"(?:local[ ]+)?function[ ]+[\w.:]+[ ]*\(|[\w.]+[ ]*=[ ]*function[ ]*\("),
    "c": re.compile(r"#define[ ]+\w+\(|(?:typedef|struct|union|enum|class|template|using|namespace|static|inline|extern|constexpr|const|virtual|explicit)\b"
                    r"|[A-Za-z_][\w:<>,*& ]*[*& ][~\w:]+\("),
}
DECLARES["cpp"] = DECLARES["c"]
NO_DECLARATION = re.compile(r"(?:return|if|for|while|switch|else|case|do|throw|delete|new|catch|goto|super|await|elif|with|raise|print)\b")
TYPE = re.compile(r"\b(?:struct|enum|union|interface|type)\b")
NESTING_MAX = {"python": 4, "rust": 4, "typescript": 4, "java": 4, "c": 4, "cpp": 4, "go": 0, "shell": 0, "lua": 0}


def imported(text: str, language: str) -> list:
    """What the file names, in its order, each once."""
    found = (next(group for group in match.groups() if group) for match in IMPORTS[language].finditer(text[:TEXT_MAX]))
    return list(dict.fromkeys(found))


def wanted_ends(name: str, path: str, language: str) -> list:
    """Ends of paths, in the package, that the name may mean."""
    folder = posixpath.dirname(path)
    if language == "python":
        dots = len(name) - len(name.lstrip("."))
        stem = name.lstrip(".").replace(".", "/")
        for _ in range(dots - 1):
            folder = posixpath.dirname(folder)
        stem = posixpath.normpath(posixpath.join(folder, stem)) if dots else stem
    elif language == "rust":
        words = [word for word in name.split("::") if word not in ("crate", "self", "super")]
        words = words[:-1] if len(words) > 1 else words
        stem = "/".join(words)
    elif language == "typescript":
        stem = posixpath.normpath(posixpath.join(folder, name))
    elif language == "java":
        stem = name.replace(".", "/")
    elif language == "lua":
        stem = name.replace(".", "/")
    else:
        stem = posixpath.normpath(name)
    return [stem + ending for ending in ENDINGS[language]]


class Package:
    """The files of one package by the ends of their paths. `read`: number -> record."""

    def __init__(self, numbers, paths, read):
        self._read, self._by_name, self._by_folder = read, {}, {}
        for number, path in zip(numbers, paths):
            self._by_name.setdefault(posixpath.basename(path), []).append((path, number))
            self._by_folder.setdefault(posixpath.basename(posixpath.dirname(path)), []).append((path, number))
        self.declarations = functools.lru_cache(512)(self._declarations)

    def uses(self, record: dict) -> list:
        """Numbers of the files that the record imports, in import order."""
        out = []
        for name in imported(record["text"], record["language"]):
            for number in self._files(name, record):
                if number not in out:
                    out.append(number)
            if len(out) >= INCLUDED_MAX:
                break
        return out[:INCLUDED_MAX]

    def _files(self, name: str, record: dict) -> list:
        if record["language"] == "go":
            if "." not in name.split("/")[0]:
                return []  # the language's own
            end = "/" + "/".join(name.split("/")[-2:])
            known = self._by_folder.get(posixpath.basename(name), [])
            same = [number for path, number in known
                    if ("/" + posixpath.dirname(path)).endswith((end, "/" + "/".join(name.split("/")[3:]))) and not path.endswith("_test.go")]
            return same[:FILES_OF_GO_MAX]
        for end in wanted_ends(name, record["path"], record["language"]):
            known = [(path, number) for path, number in self._by_name.get(posixpath.basename(end), [])
                     if path != record["path"] and (path == end or path.endswith("/" + end))]
            if known:  # of several, the one that shares most of its path with the file
                return [max(known, key=lambda item: len(posixpath.commonprefix((item[0], record["path"]))))[1]]
        return []

    def _declarations(self, number: int):
        record = self._read(number)
        return record["path"], declarations(record["text"], record["language"])


def declarations(text: str, language: str) -> str:
    """Signatures, one a line, members indented; of plain types the first fields as well. No bodies."""
    lines, out, at = text[:TEXT_MAX].split("\n"), [], 0
    while at < len(lines):
        line = lines[at]
        body = line.lstrip(" \t")
        nested = len(line) - len(body)
        at += 1
        if nested > NESTING_MAX[language] or not DECLARES[language].match(body) or NO_DECLARATION.match(body):
            continue
        while open_brackets(body) > 0 and len(body) < SIGNATURE_MAX and at < len(lines):
            body += " " + lines[at].strip()
            at += 1
        signature = cut(body, language)
        if not signature or len(signature) > SIGNATURE_MAX:
            continue
        out.append(("  " if nested else "") + signature)
        if body.rstrip().endswith("{") and TYPE.search(signature) and language not in ("python", "shell", "lua"):
            fields = type_fields(lines[at:at + FIELDS_MAX], nested)
            out += fields
            at += len(fields)
    return "\n".join(out) + "\n" if out else ""


def open_brackets(text: str) -> int:
    return text.count("(") - text.count(")")


def cut(body: str, language: str) -> str:
    """The declaration without what does it."""
    if language in ("python", "lua"):
        return body.rstrip().removesuffix(":")
    if language == "shell":
        return body.split("{")[0].rstrip()
    end = body.find("{")
    body = body if end < 0 else body[:end]
    return body.rstrip().removesuffix(";").rstrip()


def type_fields(lines: list, nested: int) -> list:
    """The lines of a plain type up to its end or its first member with a body."""
    out = []
    for line in lines:
        body = line.strip()
        if not body or body.startswith(("}", "//", "/*", "*")) or "{" in body or len(line) - len(line.lstrip()) <= nested:
            break
        out.append("  " + body)
    return out

"""Which files are source code, by their paths."""
import pathlib

LANGUAGES = {
    ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp", ".ipp": "cpp", ".hxx": "cpp",
    ".py": "python", ".go": "go", ".rs": "rust", ".ts": "typescript", ".tsx": "typescript", ".mts": "typescript", ".js": "typescript",
    ".mjs": "typescript", ".jsx": "typescript", ".java": "java", ".sh": "shell", ".bash": "shell", ".zsh": "shell", ".bats": "shell",
    ".lua": "lua",
}
# Code of others, whose licence may be another; and what nobody wrote by hand.
FOREIGN = {"node_modules", "deps", "bundled", "extern", "external", "_vendor", "godeps", "subprojects", "submodules",
           "dist", "build", "min", "umd", "generated", "testdata", "locale", "i18n", "_esm5", "_esm2015", "esm5", "esm2015"}
FOREIGN_BEGINS = ("vendor", "third_party", "third-party", "thirdparty", "3rdparty")


def foreign(part: str) -> bool:
    return part in FOREIGN or part.startswith(FOREIGN_BEGINS)


def language_of(path: str, foreign_too: bool = False):
    """None if the path is no source file of the package's own, by its ending or by a folder in it; by its ending alone if
    `foreign_too`."""
    name = pathlib.PurePosixPath(path)
    if name.suffix not in LANGUAGES or ".min." in name.name:
        return None
    if not foreign_too and any(foreign(part.lower()) for part in name.parts[:-1]):
        return None
    return LANGUAGES[name.suffix]

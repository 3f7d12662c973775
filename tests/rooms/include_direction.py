"""Who may include whom: reads the #include lines of every room and names each forbidden arrow.

Rooms stand bottom up in kRooms; a file may include its own room and rooms below it, except where kNever says no. Headers of
packages that belong to one room (kOwned) may be included nowhere else. Tests are free.
"""

import pathlib
import re

# Longest path first wins, so that engine/tokenizer/ is not taken for engine/.
kRooms = [
    ("base", ["base/"]),
    ("kernels", ["kernels/"]),
    ("shaders", ["shaders/"]),
    ("cache_store", ["cache_store/"]),
    ("lsp", ["lsp/"]),
    ("text", ["daemon/text/"]),
    ("syntax", ["daemon/syntax/"]),
    ("recall", ["daemon/recall/"]),
    ("context", ["daemon/context/"]),
    ("gguf", ["engine/model/gguf"]),  # the file format, which the tokenizer reads
    ("tokenizer", ["engine/tokenizer/", "engine/types.h"]),
    ("engine", ["engine/"]),
    ("prompt", ["daemon/prompt/"]),
    ("request", ["daemon/completion/request.h", "daemon/completion/silence.h", "daemon/completion/source.h"]),
    ("fit", ["daemon/completion/fit/"]),
    ("generate", ["daemon/completion/generate/"]),
    ("completion", ["daemon/completion/"]),
    ("config", ["daemon/config/"]),
    ("files", ["daemon/files/"]),
    ("models", ["daemon/models/"]),
    ("server", ["daemon/server/"]),
    ("client", ["daemon/client/"]),
    ("http", ["net/http/"]),
    ("cli", ["daemon/cli/"]),
    ("main", ["daemon/cli/main.cpp"]),
    ("curl", ["net/curl/"]),
    ("get", ["net/get/"]),  # a program of its own: nothing includes it
    ("remote", ["net/remote/"]),
    ("http_program", ["net/program/"]),  # likewise: of HTTP and the engine elsewhere
]
kRank = {name: rank for rank, (name, _) in enumerate(kRooms)}

kEngine = {"gguf", "tokenizer", "engine"}
kNever = {
    "lsp": kEngine | {"cache_store"},
    "text": {"kernels", "shaders", "cache_store", "lsp"},
    "syntax": {"kernels", "shaders", "cache_store", "lsp", "text"},
    "recall": {"kernels", "shaders", "cache_store", "lsp"},
    "context": {"kernels", "shaders", "cache_store", "lsp", "recall"},
    "gguf": {"cache_store", "lsp", "text", "syntax", "recall", "context"},
    "tokenizer": {"cache_store", "lsp", "text", "syntax", "recall", "context"},
    "engine": {"cache_store", "lsp", "text", "syntax", "recall", "context"},
    "prompt": {"kernels", "shaders", "cache_store", "lsp", "recall", "gguf", "engine"},
    "request": {"kernels", "shaders", "cache_store", "lsp", "recall", "gguf", "engine"},
    "fit": {"kernels", "shaders", "cache_store", "lsp", "recall", "gguf", "tokenizer", "engine", "prompt"},
    "generate": {"kernels", "shaders", "cache_store", "lsp", "recall"},
    "completion": {"kernels", "shaders", "lsp"},
    "models": {"lsp"},
    "client": {"server", "models"},
    "get": {"server", "client", "cli", "main"},
    # It knows nothing but libcurl and the environment.
    "curl": {name for name, _ in kRooms} - {"base", "curl"},
    # A program of its own: it knows the daemon by its socket. The daemon and efimd never link it.
    "http": {"kernels", "shaders", "cache_store", "recall", "gguf", "tokenizer", "engine", "prompt", "request", "fit",
             "generate", "completion", "files", "server", "models"},
    "remote": {"kernels", "shaders", "cache_store", "recall", "gguf", "tokenizer", "engine", "prompt", "request", "fit",
               "generate", "completion", "files", "models", "server", "client", "http", "cli", "main", "get"},
    # It puts the two doors into one process, and knows nothing of what passes through them.
    "http_program": {"kernels", "shaders", "cache_store", "recall", "gguf", "tokenizer", "engine", "prompt", "request", "fit",
                     "generate", "completion", "files", "models", "server", "cli", "main", "get"},
    "cli": {"http"},
    "main": {"http"},
}

kOwned = [
    (re.compile(r"sqlite3(ext)?\.h$"), ["cache_store/"]),
    (re.compile(r"(vulkan/|vk_|vulkan\.)"), ["engine/backend/vulkan/"]),
    (re.compile(r"(cuda|cublas|curand|cudnn|nvrtc|nvml|cooperative_groups|mma\.h$|cub/)"),
     ["engine/backend/cuda/", "kernels/"]),
    (re.compile(r"tree_sitter/"), ["daemon/syntax/"]),
    (re.compile(r"(curl/|openssl/)"), ["net/"]),  # the daemon has nothing that connects
    # What serves or connects over a network; Asio's local sockets are the daemon's.
    (re.compile(r"boost/(beast|asio/ip|asio/ssl)"), ["net/"]),
]

kSources = {".h", ".hpp", ".cpp", ".cc", ".c", ".cu", ".cuh", ".comp", ".glsl"}
kFolders = sorted({path.split("/")[0] for _, paths in kRooms for path in paths})
kInclude = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of(path):
    """The room of a path relative to the root, or None when it is in no room."""
    found = [(len(prefix), name) for name, prefixes in kRooms for prefix in prefixes
             if path.startswith(prefix)]
    return max(found)[1] if found else None


def resolve(root, includer, target):
    """The path, relative to the root, of what a quoted include names; None when it is no file of the tree."""
    for candidate in (root / target, includer.parent / target):
        if candidate.is_file():
            return candidate.resolve().relative_to(root.resolve()).as_posix()
    return None


def forbidden(path, target, is_quoted, resolved):
    """Why the file `path` may not include `target`; None when it may."""
    for pattern, owners in kOwned:
        if pattern.match(target) and not path.startswith(tuple(owners)):
            return f"only {' and '.join(owners)} may include <{target}>"
    if resolved is None:
        return f'"{target}" is no file of this tree; packages are included with <>' if is_quoted else None
    above, below = room_of(path), room_of(resolved)
    if below is None:
        return f"{resolved} belongs to no room"
    if kRank[below] > kRank[above]:
        return f"{above} stands below {below}"
    if below in kNever.get(above, ()):
        return f"{above} never includes {below}"
    return None


def violations(root):
    """(path, line, reason) of each forbidden #include below `root`, and the number of includes read."""
    root, found, read = pathlib.Path(root), [], 0
    files = [file for folder in kFolders for file in sorted((root / folder).rglob("*"))
             if file.suffix in kSources]
    for file in files:
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = kInclude.match(line)
            if not match:
                continue
            read += 1
            quoted = match[1] == '"'
            # A room's header in <> is an arrow too.
            resolved = resolve(root, file, match[2]) if quoted or room_of(match[2]) else None
            if reason := forbidden(path, match[2], quoted, resolved):
                found.append((path, number, reason))
    return found, read

"""Packages as tar archives, by the ordinary clients of Debian (apt) and npm. Nothing is downloaded twice."""
import contextlib
import pathlib
import re
import shutil
import subprocess
import tarfile
import time

from training.errors import TrainingError

FETCH_S_MAX = 600
REASON = re.compile(r"E: |npm (?:ERR!|error) (?!code )\S")  # the first such line; the last ones say that something failed, and where a log is
LISTS_S_MAX = 24 * 3600  # older lists name versions that the mirror no longer has


@contextlib.contextmanager
def package_tars(kind: str, name: str, downloads: pathlib.Path):
    """Opens the package's archives for reading as streams, in a list; (tar, version) of each."""
    files = sorted(folder_of(kind, name, downloads).iterdir())
    with contextlib.ExitStack() as stack:
        yield [(stack.enter_context(open_tar(file)), version_of(file)) for file in files if is_archive(file)]


def place_of(kind: str, name: str, downloads: pathlib.Path) -> pathlib.Path:
    return downloads / f"{kind}-{name.replace('/', '-')}"


def folder_of(kind: str, name: str, downloads: pathlib.Path) -> pathlib.Path:
    folder = place_of(kind, name, downloads)
    if folder.exists():
        return folder
    part = folder.with_name(folder.name + ".part")
    fetch_package(kind, name, part, downloads)
    if len({version_of(file) for file in part.iterdir() if is_archive(file)}) > 1:
        shutil.rmtree(part)  # a stopped download had left a part of an earlier version
        fetch_package(kind, name, part, downloads)
    part.rename(folder)
    return folder


def fetch_package(kind: str, name: str, part: pathlib.Path, downloads: pathlib.Path) -> None:
    """What a stopped download left in `part` is gone on with, by apt."""
    part.mkdir(parents=True, exist_ok=True)
    if kind == "deb":
        fetch(["apt-get", "download", name], part)
    elif kind == "npm":
        fetch(["npm", "pack", "--ignore-scripts", name], part)
    else:
        fetch_source(name, part, downloads)


def fetch(command: list, folder: pathlib.Path) -> str:
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FETCH_S_MAX, check=False)
    except FileNotFoundError as error:
        raise TrainingError(f"{command[0]} is missing; install it, or remove its packages from the list") from error
    except subprocess.TimeoutExpired as error:
        raise TrainingError(f"{shown(command)}: not done within {FETCH_S_MAX} s; try again") from error
    if ran.returncode != 0:
        lines = (ran.stderr.strip() or ran.stdout.strip()).splitlines() or ["no reason given"]
        raise TrainingError(f"{shown(command)}: {next(filter(REASON.match, lines), lines[-1])}")
    return ran.stdout


def shown(command: list) -> str:
    """The command without apt's `-o NAME=VALUE`."""
    return " ".join(word for before, word in zip(["", *command], command) if "-o" not in (before, word))


def source_options(downloads: pathlib.Path, renewed: bool = False) -> list:
    """apt's options for source packages. Few machines have source lists configured, so they are kept beside the downloads; mirror and
    release are those of the system. `renewed`: lists of more than LISTS_S_MAX are fetched again."""
    apt = downloads.absolute() / "apt"
    options = ["-o", f"Dir::State::lists={apt}/lists", "-o", f"Dir::Etc::sourcelist={apt}/sources.list",
               "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::Cache={apt}/cache"]
    ready = apt / "ready"
    if not ready.exists() or renewed and time.time() - ready.stat().st_mtime > LISTS_S_MAX:
        (apt / "lists/partial").mkdir(parents=True, exist_ok=True)
        (apt / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
        (apt / "sources.list").write_text(source_list())
        # Without this apt succeeds where no list could be had, and every package would be missing from then on.
        fetch(["apt-get", *options, "-o", "APT::Update::Error-Mode=any", "update"], downloads)
        ready.touch()
    return options


def fetch_source(name: str, folder: pathlib.Path, downloads: pathlib.Path) -> None:
    fetch(["apt-get", *source_options(downloads), "source", "--download-only", "--tar-only", "--only-source", name], folder)


def source_list() -> str:
    """deb-src lines for this system's Debian releases."""
    uris = fetch(["apt-get", "--print-uris", "-o", "Dir::State::lists=/nonexistent", "update"], pathlib.Path("/"))
    lines = []
    for line in uris.splitlines():
        uri = line.split("'")[1] if line.count("'") >= 2 else ""
        if uri.endswith("/InRelease") and "/debian/dists/" in uri:
            mirror, suite = uri.removesuffix("/InRelease").split("/dists/")
            lines.append(f"deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} {suite} main\n")
    if not lines:
        raise TrainingError("apt's sources name no Debian mirror; remove the 'source' packages from the list")
    return "".join(lines)


def is_archive(file: pathlib.Path) -> bool:
    """Debian's own changes (debian.tar) are not the project's code."""
    name = file.name
    return name.endswith((".deb", ".tgz")) or (".tar." in name and ".debian.tar." not in name and not name.endswith(".asc"))


@contextlib.contextmanager
def open_tar(file: pathlib.Path):
    if file.suffix != ".deb":
        with tarfile.open(file, "r|*") as tar:
            yield tar
        return
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(file)], stdout=subprocess.PIPE) as unpacked:
        with tarfile.open(fileobj=unpacked.stdout, mode="r|") as tar:
            yield tar
        unpacked.stdout.read()
    if unpacked.returncode != 0:
        raise TrainingError(f"{file}: dpkg-deb cannot unpack it; remove its folder, so that it is fetched again")


def version_of(file: pathlib.Path) -> str:
    """As the archive's name has it: libfmt-dev_9.1.0+ds1-2_amd64.deb, zod-3.25.76.tgz, nodejs_18.13.0.orig-ada.tar.xz."""
    stem = file.name.split(".tar.")[0].split(".orig")[0].removesuffix(".deb").removesuffix(".tgz")
    return stem.split("_")[1].replace("%3a", ":") if "_" in stem else stem.rsplit("-", 1)[-1]

"""A daemon of one's own: folders that nothing else knows, and an end to everything that was started in them."""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time

kSmallModel = "small"  # for tests that only want some trained model, soon
kSmallModelF16 = pathlib.Path(__file__).resolve().parent / "efim-8m.gguf"
kEndS = 30  # what those that are still there may take to end by themselves
kStopS = 120  # of `efimd stop`, on a busy machine


def small_model(program):
    """The small model that the build of `program` has made of the one of F16 (small_model.py); that one, if it has made none."""
    made = (pathlib.Path(program).resolve().parent / "../../tests/support/efim-8m.gguf").resolve()
    return made if made.is_file() else kSmallModelF16


@contextlib.contextmanager
def private_daemon(efimd, config="", model=None):
    """Gives an environment in which `efimd` talks to a daemon of its own, whose config.toml is `config`.
    Its model is `model`, a path or kSmallModel; without one it has the bundled one, as users have it.

    The commands in it find `efimd` on their PATH and a home folder, $HOME, that is empty. At the end the daemon is asked to
    finish, every process with that home has ended, and then the folders go away, even after failures.
    """
    efimd = pathlib.Path(efimd).resolve()
    with tempfile.TemporaryDirectory(prefix="efimd-") as folder:
        home = pathlib.Path(folder)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("EFIMD_", "XDG_"))}
        environment |= {
            "HOME": str(home),
            "PATH": f"{efimd.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "EFIMD_CONFIG": str(home / "config.toml"),
            "EFIMD_RUNTIME_DIR": str(home / "run"),
            "EFIMD_CACHE_DIR": str(home / "cache"),
            "EFIMD_STATE_DIR": str(home / "state"),
        }
        if model is not None:
            environment["EFIMD_MODEL"] = str(small_model(efimd) if model == kSmallModel else model)
        (home / "config.toml").write_text(config, encoding="utf-8")
        try:
            yield environment
        finally:
            end_all(efimd, environment)


def end_all(efimd, environment):
    """Until no process with this home is left: an editor that is ending may write there still, or bring a daemon back."""
    deadline = time.monotonic() + kEndS
    while True:
        subprocess.run([efimd, "stop"], env=environment, stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=kStopS, check=False)
        left = processes_of(environment["HOME"])
        if not left:
            return
        if time.monotonic() > deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)  # the pace of looking; it decides nothing


def processes_of(home):
    """Pids of the processes that were started with this $HOME; none without /proc."""
    # A daemon hides its memory, environment included, from all but root; its lock has its pid.
    holder = lock_holder(pathlib.Path(home) / "run" / "daemon.lock")
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except PermissionError:
            if int(process.name) == holder and b"serve" in (process / "cmdline").read_bytes():
                found.append(holder)
        except OSError:
            pass  # it has ended, or is another user's
    return found


def lock_holder(file):
    """The pid that the last holder of a lock wrote into it; None if there is none."""
    try:
        return int(file.read_text() or 0) or None
    except (OSError, ValueError):
        return None

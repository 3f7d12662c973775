"""Runs a candidate program in a child: isolated Python, an empty folder of its own, no network if the kernel lets an ordinary user
do that, and limits on time, memory, processes and written bytes. A guard against accidents, not against an attacker."""
import functools
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

CPU_S_MAX = 5
WALL_S_MAX = 10
MEMORY_BYTES_MAX = 1 << 30
FILE_BYTES_MAX = 1 << 20
PROCESSES_MAX = 64
PROGRAM_BYTES_MAX = 1 << 20


@functools.lru_cache(1)
def apart() -> tuple:
    """A command prefix that leaves the child no network; empty if that is not possible."""
    command = ("unshare", "--user", "--map-root-user", "--net")
    if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
        return command
    return ()


def limit() -> None:
    for what, most in ((resource.RLIMIT_CPU, CPU_S_MAX), (resource.RLIMIT_AS, MEMORY_BYTES_MAX),
                       (resource.RLIMIT_FSIZE, FILE_BYTES_MAX), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NPROC, PROCESSES_MAX)):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def run(program: str) -> str:
    """"passed", "failed" or "timed out"."""
    if len(program.encode()) > PROGRAM_BYTES_MAX:
        return "failed"
    with tempfile.TemporaryDirectory(prefix="efim-candidate-") as folder:
        with subprocess.Popen([*apart(), sys.executable, "-I", "-"], cwd=folder, env={"PATH": "/usr/bin:/bin"},
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit,
                              start_new_session=True) as child:
            try:
                child.communicate(program.encode(), timeout=WALL_S_MAX)
            except subprocess.TimeoutExpired:
                kill_group(child)
                return "timed out"
            kill_group(child)  # the processes that it started and did not end
        return "passed" if child.returncode == 0 else "failed"


def kill_group(child) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass

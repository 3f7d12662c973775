#!/usr/bin/env python3
"""Autostart under a real systemd user manager: enabled, woken by its socket, idle and woken again, killed, disabled.

    user_manager_test.py EFIMD

Each manager has a machine of its own to see: a mount and a pid namespace with an empty /run. Several run at once, as an idle daemon waits a
second before it leaves. Exit status 77 (skipped) where that cannot be had, with the reason as the last line.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

kSkipped = 77
kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "tests" / "process"))
sys.path.insert(0, str(kRoot / "tests" / "support"))
from lsp_peer import framed  # noqa: E402
from private_daemon import small_model  # noqa: E402
from polling import poll  # noqa: E402

kManagers = 5  # the last one is refused namespaces
kIdleExits = 20  # of each manager's daemon
kIdleExitS = 1
kPatienceS = 180
kRunS = 600  # of one manager with all that is asked of it
kUnit, kPlainUnit = "efimd.service", "efimd-plain.service"
kRuntime = pathlib.Path("/run/user/0")
kSocket = kRuntime / "efimd/daemon.sock"


def run(*command, status=0):
    done = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=kPatienceS, check=False)
    assert done.returncode == status, f"{command}: {done.returncode}, {done.stdout}{done.stderr}"
    return done.stdout


def pid_of_daemon():
    """Whoever answers at the socket, which has nobody else connected."""
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rwb") as stream:
        connection.settimeout(kPatienceS)
        connection.connect(str(kSocket))
        stream.write(framed({"jsonrpc": "2.0", "id": 1, "method": "efim/version", "params": None}))
        stream.flush()
        size = int(stream.readline().split(b":")[1])
        stream.readline()
        return json.loads(stream.read(size))["result"]["pid"]


def idle_exits():
    """Asks at about the moments at which the idle daemon leaves, until enough have left. How many requests were answered, all of them."""
    pids, answered = set(), 0
    while len(pids) <= kIdleExits:
        pids.add(pid_of_daemon())
        answered += 1
        time.sleep(kIdleExitS + 0.002 * (answered % 5 - 2))  # just before, at and after it
    return answered


def answers_http(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=kPatienceS) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % port)
            return connection.recv(4096).startswith(b"HTTP/1.1 ")
    except OSError:
        return False


def free_port():
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return any_socket.getsockname()[1]


def inside(efimd, unit, port):
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    pathlib.Path("/run/systemd/system").mkdir(parents=True)  # systemd asks by it whether it runs this machine
    kRuntime.mkdir(mode=0o700, parents=True)
    configuration = pathlib.Path(os.environ["HOME"], ".config/efimd/config.toml")
    configuration.parent.mkdir(parents=True)
    configuration.write_text(f"[daemon]\nidle_exit_s = {kIdleExitS}\n[http]\nenable = true\nport = {port}\n"
                             f"[model]\nfile = {json.dumps(str(small_model(efimd)))}\n", encoding="utf-8")
    with open(pathlib.Path(os.environ["HOME"], "manager.log"), "wb") as log:
        manager = subprocess.Popen(["/lib/systemd/systemd", "--user", "--log-target=console"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    poll((kRuntime / "systemd/private").exists, "the manager")

    run(efimd, "autostart", "enable")
    if unit == kPlainUnit:  # as a system that gives users no namespaces
        drop_in = pathlib.Path(os.environ["HOME"], ".config/systemd/user/efimd.service.d/refused.conf")
        drop_in.parent.mkdir()
        drop_in.write_text("[Service]\nBindPaths=/nowhere\n", encoding="utf-8")
        run("systemctl", "--user", "daemon-reload")
    assert run("systemctl", "--user", "is-active", "efimd.socket") == "active\n"
    assert run("systemctl", "--user", "is-active", "efimd.service", status=3) == "inactive\n", "nobody has asked yet"
    first = pid_of_daemon()
    main_pid = run("systemctl", "--user", "show", "--value", "--property=MainPID", unit)
    assert int(main_pid) == first, f"the manager's daemon is {main_pid}, but {first} answers"
    own_users = os.readlink(f"/proc/{first}/ns/user") != os.readlink("/proc/self/ns/user")
    assert own_users == (unit == kUnit)
    assert "efimd.socket" in run(efimd, "autostart", "status")

    answered = idle_exits()

    before = pid_of_daemon()
    os.kill(before, signal.SIGKILL)
    poll(lambda: pid_of_daemon() != before, "the next daemon")
    # The daemon's unit has no network; the one of efimd-http starts with it.
    poll(lambda: answers_http(port), "an answer by HTTP")
    run(efimd, "autostart", "disable")
    assert run("systemctl", "--user", "is-active", "efimd.socket", status=3) == "inactive\n"
    left = {path.name for path in pathlib.Path(os.environ["HOME"], ".config/systemd/user").iterdir()}
    assert left <= {"efimd.service.d"}, left
    manager.terminate()
    print(json.dumps({"unit": unit, "idleExits": kIdleExits, "answered": answered}))


def main():
    efimd = str(pathlib.Path(sys.argv[1]).resolve())
    if sys.argv[2:3] == ["inside"]:
        return inside(efimd, sys.argv[3], int(sys.argv[4]))
    for tool in ("unshare", "systemctl", "/lib/systemd/systemd"):
        if not shutil.which(tool):
            print(f"{tool} is missing: this is no machine of systemd's")
            return kSkipped
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]  # all in it ends with the first
    if os.geteuid() != 0 or subprocess.run([*apart, "true"], check=False, capture_output=True).returncode != 0:
        print("a manager of its own is given a machine of its own by root only")
        return kSkipped
    usual = kUnit if subprocess.run(["unshare", "--user", "--net", "true"], check=False, capture_output=True).returncode == 0 else kPlainUnit
    with tempfile.TemporaryDirectory(prefix="efimd-") as folder:
        children = []
        for name in range(kManagers):
            home = pathlib.Path(folder, str(name))
            home.mkdir()
            environment = {"HOME": str(home), "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(kRuntime)}
            unit = kPlainUnit if name == kManagers - 1 else usual
            children.append((home, subprocess.Popen([*apart, sys.executable, __file__, efimd, "inside", unit, str(free_port())], env=environment,
                                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
        failed = 0
        for home, child in children:
            try:
                said = child.communicate(timeout=kRunS)[0]
            except subprocess.TimeoutExpired:
                child.kill()
                said = child.communicate()[0] + f"not done in {kRunS} s\n"
            print(said, end="")
            if child.returncode != 0:
                failed += 1
                print((home / "manager.log").read_text(errors="replace")[-2000:] if (home / "manager.log").exists() else "no manager")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

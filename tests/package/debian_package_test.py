#!/usr/bin/env python3
"""The Debian package: lintian finds no error in it, and in a clean Debian it installs, completes at once and has VS Code's extension.

    debian_package_test.py BUILD

Exit status 77 (skipped) when this machine cannot make a clean root, with the reason as the last line.
"""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

kRoot = pathlib.Path(__file__).resolve().parents[2]
kSkipped = 77
kSuite = "bookworm"
# In the clean root, as its first user: everything that the package brings, and one completion.
kInside = """set -e
export HOME=/root XDG_RUNTIME_DIR=
apt-get -q install --yes --no-install-recommends /package.deb
efimd --version
code=$(mktemp --suffix=.py)
printf 'def fibonacci(n):\\n    if n < 2:\\n        return n\\n    return fibonacci(n - 1) + \\n' > "$code"
suggestion=$(efimd complete "$code:4:31")
test -n "$suggestion"
echo "suggested: $suggestion"
efimd stop
zcat /usr/share/man/man1/efimd.1.gz | grep -q 'efimd complete'
zcat /usr/share/man/man1/efimd-bench.1.gz | grep -q 'replay trace.jsonl'
efimd-bench fill --help | grep -q 'efimd-bench fill'
test -e /usr/lib/systemd/user/efimd.socket -a -e /usr/lib/systemd/user/efimd-plain.service -a -e /usr/lib/systemd/user/efimd-http.service
bash -c 'source /usr/share/bash-completion/completions/efimd
  COMP_WORDS=(efimd mod); COMP_CWORD=1; _efimd; test "${COMPREPLY[*]}" = model
  COMP_WORDS=(efimd model ""); COMP_CWORD=2; _efimd; [[ " ${COMPREPLY[*]} " == *" list "* ]]'
bash -c 'source /usr/share/bash-completion/completions/efimd-bench
  COMP_WORDS=(efimd-bench rep); COMP_CWORD=1; _efimd_bench; test "${COMPREPLY[*]}" = replay'
"""
# If VS Code's extension could be packed: it is in the package, and setup would install it into a VS Code.
kExtension = """printf '#!/bin/sh\\n' > /usr/local/bin/code
chmod +x /usr/local/bin/code
efimd setup --dry-run --no-model | grep -F 'code --install-extension /usr/share/efimd/efimd.vsix'
test -s /usr/share/efimd/efimd.vsix
"""


def skip(reason):
    print(reason)
    sys.exit(kSkipped)


def run(*command, **options):
    print("$", *command, flush=True)
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=True, **options)


def empty_folders(package):
    listed = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdin=subprocess.DEVNULL, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(listed)) as files:
        members = files.getmembers()
    used = {str(pathlib.PurePath(member.name).parent) for member in members}
    return [member.name for member in members if member.isdir() and str(pathlib.PurePath(member.name)) not in used]


def main():
    build = pathlib.Path(sys.argv[1])
    for tool in ("dpkg-shlibdeps", "lintian", "mmdebstrap"):
        if not shutil.which(tool):
            skip(f"{tool} is missing; scripts/deps --tests installs it")
    if os.geteuid() != 0:
        skip("a clean root is made by root only")
    packed = subprocess.run([kRoot / "scripts" / "vsix", build / "vscode" / "extension", build.resolve() / "efimd.vsix"],
                            stdin=subprocess.DEVNULL, check=False).returncode
    if packed not in (0, kSkipped):
        sys.exit("VS Code's extension cannot be packed")
    inside = kInside + (kExtension if packed == 0 else "")
    with tempfile.TemporaryDirectory(prefix="efimd-") as folder:
        run("cpack", "-G", "DEB", "-B", folder, cwd=build)
        package, = pathlib.Path(folder).glob("*.deb")
        run("lintian", "--allow-root", "--fail-on", "error", package)
        if empty := empty_folders(package):
            sys.exit(f"empty folders are in the package: {empty}")
        hooks = [f"--customize-hook=copy-in {package.rename(package.with_name('package.deb'))} /",
                 f'--customize-hook=chroot "$1" bash -c {shell_quoted(inside)}']
        made = subprocess.run(["mmdebstrap", "--mode=root", "--variant=apt", *hooks, kSuite, f"{folder}/root"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        said = made.stdout + made.stderr
        if made.returncode != 0 and "suggested:" not in said and "apt-get update" in said.split("\n")[-3:]:
            skip("no packages of Debian could be had from the system's mirror")
        print(*[line for line in said.splitlines() if line.startswith(("suggested:", "efimd ", "E:"))], sep="\n")
        if made.returncode != 0:
            print(said[-4000:])
            return 1
    return 0


def shell_quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


if __name__ == "__main__":
    sys.exit(main())

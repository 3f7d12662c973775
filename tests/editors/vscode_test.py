#!/usr/bin/env python3
"""editors/vscode in a real VS Code page: code-server in a headless Chromium.

    vscode_test.py EFIMD DIRECTORY SCRIPT

SCRIPT in vscode/ has the tests. Screenshots are left in DIRECTORY/screenshots. Exit status 77 (skipped) when this machine cannot have VS Code, with the reason last.
"""

import pathlib
import sys

import node_tests

kRoot = pathlib.Path(__file__).resolve().parents[2]


def main():
    efimd, directory, script = sys.argv[1:]
    screenshots = pathlib.Path(directory, "screenshots").resolve()
    screenshots.mkdir(parents=True, exist_ok=True)
    return node_tests.run(efimd, directory, f"vscode/{script}", EFIMD_SCREENSHOTS=screenshots, EFIMD_TEXTS=kRoot / "tests" / "editors" / "texts",
                          EFIMD_MODELS=kRoot / "models", EFIMD_OLD_DAEMON=kRoot / "tests" / "support" / "old_daemon.py")


if __name__ == "__main__":
    sys.exit(main())

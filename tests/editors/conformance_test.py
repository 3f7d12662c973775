#!/usr/bin/env python3
"""`efimd lsp` behind the official client library of LSP 3.18 (conformance/conformance_test.mjs has the tests).

    conformance_test.py EFIMD DIRECTORY

Exit status 77 (skipped) when this machine cannot have what install_vscode DIRECTORY brings, with the reason last.
"""

import pathlib
import subprocess
import sys

import node_tests

kRoot = pathlib.Path(__file__).resolve().parents[2]


def main():
    efimd, directory = sys.argv[1:]
    model = pathlib.Path(directory, "metaModel.json").resolve()
    subprocess.run([kRoot / "tests/editors/install_meta_model", model.parent], stdin=subprocess.DEVNULL, check=False)
    return node_tests.run(efimd, directory, "conformance/conformance_test.mjs", EFIMD_SOURCE=kRoot / "base" / "utf8.cpp", EFIMD_META_MODEL=model)


if __name__ == "__main__":
    sys.exit(main())

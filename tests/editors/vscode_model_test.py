#!/usr/bin/env python3
"""editors/vscode where only the bundled model is, in a real VS Code page (vscode/model_offer_test.mjs has the tests).

    vscode_model_test.py EFIMD DIRECTORY

The hub is the tests' own. Exit status 77 (skipped) when this machine cannot have VS Code, with the reason last.
"""

import os
import pathlib
import sys

import node_tests

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "tests" / "net" / "get"))
from hub_server import Hub, serve_catalogue  # noqa: E402
from private_daemon import small_model  # noqa: E402


def main():
    efimd, directory = sys.argv[1:]
    screenshots = pathlib.Path(directory, "screenshots").resolve()
    screenshots.mkdir(parents=True, exist_ok=True)
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "LLAMA_CACHE", "OLLAMA_MODELS", "HF_TOKEN", "HF_HUB_OFFLINE"):
        os.environ.pop(name, None)
    hub = Hub()
    serve_catalogue(hub, (kRoot / "models/catalog.toml").read_text(), small_model(efimd).read_bytes())
    return node_tests.run(efimd, directory, "vscode/model_offer_test.mjs", model=None, EFIMD_SCREENSHOTS=screenshots, HF_ENDPOINT=hub.endpoint)


if __name__ == "__main__":
    sys.exit(main())

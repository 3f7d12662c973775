#!/usr/bin/env python3
"""Draws docs/neovim.svg: ghost text in a real Neovim, in a terminal, with the README's lines of configuration.

    picture.py EFIMD NEOVIM > docs/neovim.svg        (needs tmux, which is the terminal)
"""

import pathlib
import re
import subprocess
import sys
import time

kRoot = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(kRoot / "tests" / "support"), str(kRoot / "tests" / "editors")]
from neovim import kSettings  # noqa: E402
from neovim_test import readme_configuration  # noqa: E402
from private_daemon import private_daemon  # noqa: E402
from terminal_picture import plain, svg  # noqa: E402

kColumns, kRows = 72, 12
kPatienceS = 30

kTyped = "    def add(self"


def capture(efimd, neovim):
    """The screen, with its escape sequences, once there is ghost text on it."""
    with private_daemon(efimd, "[completion]\nconfidence = 0\n") as environment:
        home = pathlib.Path(environment["HOME"])
        (home / "init.lua").write_text(readme_configuration() + """
            vim.o.termguicolors = true; vim.o.laststatus = 0; vim.o.ruler = false; vim.o.showmode = false
            vim.o.fillchars = 'eob: '
            vim.api.nvim_create_autocmd('LspAttach', { callback = function() vim.o.number = true end })
        """, encoding="utf-8")
        (home / "settings.py").write_text(kSettings, encoding="utf-8")
        tmux = ["tmux", "-S", str(home / "tmux"), "-f", "/dev/null"]

        def run(*arguments):
            return subprocess.run([*tmux, *arguments], env=environment, check=True,
                                  capture_output=True, text=True).stdout

        def screen_when(holds):
            deadline = time.monotonic() + kPatienceS
            while not holds(screen := run("capture-pane", "-e", "-p")):
                if time.monotonic() > deadline:
                    raise SystemExit(f"this is all that came in {kPatienceS} s:\n{screen}")
                time.sleep(0.05)
            return screen

        run("new-session", "-d", "-x", str(kColumns), "-y", str(kRows),
            f"COLORTERM=truecolor {neovim} -u {home}/init.lua {home}/settings.py")
        try:
            run("set-option", "-s", "escape-time", "0")
            screen_when(lambda screen: "1 class" in plain(screen))  # numbers: the client is there
            run("send-keys", "G", "o")
            run("send-keys", "-l", kTyped)
            # Ghost text is the only text after the typed text.
            return screen_when(lambda screen: re.search(re.escape(kTyped) + r"\S", plain(screen)))
        finally:
            run("kill-server")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: picture.py EFIMD NEOVIM > docs/neovim.svg")
    print(svg(capture(*(str(pathlib.Path(path).resolve()) for path in sys.argv[1:])), kColumns, kRows))

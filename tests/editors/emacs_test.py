#!/usr/bin/env python3
"""The lines that `efimd setup` writes for Emacs, which are editors/README.md's, in a real Emacs with lsp-mode 10: a suggestion is seen in a terminal and taken by lsp-mode's key.

    emacs_test.py EFIMD DIRECTORY

A picture of the terminal is left in DIRECTORY/screenshots. Exit status 77 (skipped) when this machine cannot have Emacs and lsp-mode, with the reason as the last line.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(kRoot / "tests" / "support"), str(kRoot / "tests" / "editors")]
from neovim import kSettings  # noqa: E402
from private_daemon import kSmallModel, private_daemon  # noqa: E402
from terminal_picture import svg  # noqa: E402

kSkipped = 77
kPatienceS = 180  # for each of the suggestions that it waits for
kColumns, kRows = 72, 16
kInit = """
(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil create-lockfiles nil
      lsp-session-file (expand-file-name "lsp-session" "~") lsp-auto-guess-root t lsp-guess-root-without-session t
      lsp-enable-suggest-server-download nil)
(dolist (folder (directory-files (getenv "LSP_MODE") t "^[^.]")) (add-to-list 'load-path folder))
(require 'lsp-mode)
(require 'lsp-inline-completion)
%s
(setq server-name (expand-file-name "emacs.sock" "~"))
(server-start)
(add-hook 'python-mode-hook #'lsp)
"""


def readme_lines():
    readme = (kRoot / "editors" / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```elisp\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL))


class Emacs(unittest.TestCase):
    efimd = lisp = pictures = None

    def setUp(self):
        environment = self.enterContext(private_daemon(self.efimd, "[completion]\nconfidence = 0\n", kSmallModel))
        self.home = pathlib.Path(environment["HOME"])
        self.environment = environment | {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LSP_MODE": str(self.lisp)}
        (self.home / "init.el").write_text(kInit % self.written_by_setup(), encoding="utf-8")
        (self.home / ".git").mkdir()  # for lsp-mode a project begins there
        (self.home / "settings.py").write_text(kSettings, encoding="utf-8")
        self.tmux("new-session", "-d", "-x", str(kColumns), "-y", str(kRows), "emacs", "-nw", "-Q", "-l", str(self.home / "init.el"),
                  str(self.home / "settings.py"))
        self.addCleanup(subprocess.run, ["tmux", "-S", str(self.home / "tmux"), "kill-server"], check=False, capture_output=True)

    def written_by_setup(self):
        only_emacs = self.home / "bin"
        only_emacs.mkdir()
        (only_emacs / "emacs").symlink_to(shutil.which("emacs"))
        subprocess.run([self.efimd, "setup", "--yes", "--no-model"], env=self.environment | {"PATH": str(only_emacs)},
                       stdin=subprocess.DEVNULL, capture_output=True, check=True)
        lines = (self.home / ".emacs.d" / "init.el").read_text(encoding="utf-8")
        self.assertIn(readme_lines(), lines.replace(str(self.efimd.resolve()), "efimd"))
        return lines

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", str(self.home / "tmux"), "-f", "/dev/null", *arguments], check=True,
                              env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout

    def lisp_value(self, expression):
        done = subprocess.run(["emacsclient", "-s", str(self.home / "emacs.sock"), "--eval", expression], check=False,
                              env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.stdout.strip()

    def until(self, what, holds):
        deadline = time.monotonic() + kPatienceS
        while not (found := holds()):
            self.assertLess(time.monotonic(), deadline, f"{what} did not come; on the screen:\n{self.tmux('capture-pane', '-p')}")
            time.sleep(0.05)  # the pace of asking; it decides nothing
        return found

    def in_buffer(self, expression):
        return self.lisp_value(f'(with-current-buffer "settings.py" {expression})')

    def suggested(self):
        return self.in_buffer("(and lsp-inline-completion--items (lsp-get (elt lsp-inline-completion--items 0) :insertText))") not in ("", "nil")

    def model_is_ready(self):
        done = subprocess.run([self.efimd, "status", "--json"], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        return done.returncode == 0 and json.loads(done.stdout)["state"]["name"] == "ready"

    def test_a_suggestion_is_seen_and_taken(self):
        self.until("the server", lambda: self.in_buffer("(and lsp-mode lsp-inline-completion-mode t)") == "t")
        # What is asked while the model is loading is not asked again by itself.
        self.until("the model", self.model_is_ready)
        self.assertEqual(self.lisp_value("lsp-inline-completion-idle-delay"), "0.2")
        self.tmux("send-keys", "M->")
        self.tmux("send-keys", "-l", "    def set(self, na")
        for key in ("m", "e", ",", " "):
            try:
                self.until("a suggestion", lambda: self.in_buffer("(and (overlayp lsp-inline-completion--overlay) t)") == "t")
                break
            except AssertionError:
                self.tmux("send-keys", "-l", key)
        before = self.in_buffer("(buffer-substring-no-properties (point-min) (point-max))")
        ghost = self.in_buffer("(substring-no-properties (overlay-get lsp-inline-completion--overlay 'after-string))")
        self.assertRegex(ghost, r"^\".+\"$")
        self.until("the suggestion on the screen", lambda: ghost.strip('"').split("\\n")[0] in self.tmux("capture-pane", "-p"))
        self.pictures.mkdir(parents=True, exist_ok=True)
        (self.pictures / "emacs.svg").write_text(svg(self.tmux("capture-pane", "-e", "-p"), kColumns, kRows), encoding="utf-8")
        self.in_buffer("(lsp-inline-completion-accept)")
        after = self.until("the accepted text", lambda: (now := self.in_buffer("(buffer-substring-no-properties (point-min) (point-max))")) != before and now)
        self.assertEqual(after, before[:-1] + ghost.strip('"') + '"')


def main():
    efimd, directory = map(pathlib.Path, sys.argv[1:])
    for tool in ("emacs", "emacsclient", "tmux"):
        if not shutil.which(tool):
            print(f"{tool} is missing; scripts/deps --tests installs it")
            return kSkipped
    installed = subprocess.run([pathlib.Path(__file__).with_name("install_lsp_mode"), directory], stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        print(installed.stderr, end="")
        return installed.returncode
    Emacs.efimd, Emacs.lisp, Emacs.pictures = efimd, installed.stdout.strip(), directory / "screenshots"
    return not unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())

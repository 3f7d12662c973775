#!/usr/bin/env python3
"""What the shells complete behind a command line, asked of the real shells that are here.

    completions_test.py TEXTS       the program that prints the installed texts
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

# Command line -> words that must be offered for its last word, and words that must not.
kAsked = {
    "efimd st": ({"status", "stop"}, {"setup"}),
    "efimd help ": ({"status", "cache"}, {"list", "here.txt"}),
    "efimd help cache ": ({"list", "purge"}, {"status", "here.txt"}),
    "efimd complete --stop ": ({"none", "line", "block"}, {"--json", "here.txt"}),
    "efimd complete --max-tokens 16 he": ({"here.txt"}, set()),
    "efimd complete --max-tokens 16 here.txt --rec": ({"--receipt"}, {"here.txt"}),
    "efimd cache purge here.txt --j": ({"--json"}, {"--model"}),
    "efimd http --port 8012 --ba": ({"--background"}, {"--stop"}),
    "efimd http --port ": (set(), {"--background", "here.txt"}),
}
kBash = """
source "$1"; cd "$2"; shift 2
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_efimd
printf '%s\\n' "${COMPREPLY[@]}"
"""
# The completion system is not needed: what it would be told is printed.
kZsh = """
compadd() { shift; print -l -- ${(M)@:#$current*} }
_files() { print -l -- ${(M)${(f)"$(ls)"}:#$current*} }
script=$1; cd $2; shift 2
words=("$@"); CURRENT=$#; current=${@[-1]}
source $script
"""
kFish = "source $argv[1]; cd $argv[2]; complete -C $argv[3] | string replace -r '\\t.*' ''"


class Completions(unittest.TestCase):
    texts = None

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "here.txt").touch()

    def assert_offered(self, shell, command):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        script = self.folder / f"script.{shell}"
        script.write_text(subprocess.run([self.texts, shell], check=True, capture_output=True, text=True).stdout)
        for line, (wanted, unwanted) in kAsked.items():
            done = subprocess.run(command(script, line), capture_output=True, text=True, timeout=60, check=False,
                                  env={"HOME": str(self.folder), "PATH": "/usr/local/bin:/usr/bin:/bin"}, stdin=subprocess.DEVNULL)
            offered = set(done.stdout.split())
            self.assertEqual((wanted - offered, unwanted & offered, done.stderr), (set(), set(), ""), (line, offered))

    def test_bash(self):
        self.assert_offered("bash", lambda script, line: ["bash", "--norc", "-c", kBash, "bash", script, self.folder, *line.split(" ")])

    def test_zsh(self):
        self.assert_offered("zsh", lambda script, line: ["zsh", "-f", "-c", kZsh, "zsh", script, self.folder, *line.split(" ")])

    def test_fish(self):
        self.assert_offered("fish", lambda script, line: ["fish", "--no-config", "-c", kFish, script, self.folder, line])


if __name__ == "__main__":
    Completions.texts = sys.argv.pop(1)
    sys.exit(unittest.main(verbosity=2))

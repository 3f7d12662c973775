#!/usr/bin/env python3
"""Every command in the README's shell blocks is run, and ends as the README says: with 0, or as its comment "exits N" says.

    readme_commands_test.py EFIMD

`efimd` commands run in the order in which they stand, in the source tree, with a daemon and folders of their own. `efimd serve` stays
in the foreground: it is started, and must end well when `efimd stop` has come.
"""

import pathlib
import re
import shlex
import subprocess
import sys
import time
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "tests" / "support"))
from private_daemon import private_daemon  # noqa: E402

kPatienceS = 180
# Commands that set up or test the whole project; scripts/test runs the builds, and its own test is that it ends well.
kProject = {"scripts/bench", "scripts/deps", "scripts/demo", "scripts/test"}
kBuild = re.compile(r"(cmake --preset|cmake --build --preset|ctest --preset) (release|debug|asan|tsan)$")
kInstall = re.compile(r"mkdir -p ~/\.local/bin && ln -sf \"\$PWD/build/release/\S+/efimd\" ~/\.local/bin/efimd$")


def shell_lines(readme):
    """(command, comment) of each line in the README's ```sh blocks."""
    for block in re.findall(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL):
        for line in filter(str.strip, block.splitlines()):
            command, _, comment = line.partition(" # ")
            yield command.strip(), comment.strip()


def expected_status(comment):
    said = re.search(r"\bexits (\d)", comment)
    return int(said[1]) if said else 0


class ReadmeCommands(unittest.TestCase):
    efimd = None

    @classmethod
    def setUpClass(cls):
        cls.readme = (kRoot / "README.md").read_text(encoding="utf-8")
        cls.lines = list(shell_lines(cls.readme))

    def test_every_file_that_the_readme_names_is_there(self):
        named = re.findall(r"[`(]([\w./-]+/[\w.-]+\.(?:h|cpp|md|svg|gguf))[`)]", self.readme)
        self.assertGreater(len(named), 10)
        self.assertEqual([path for path in named if not (kRoot / path).is_file()], [])

    def test_every_command_is_known_to_this_test(self):
        for command, _ in self.lines:
            with self.subTest(command):
                words = shlex.split(command)
                if words[0] in kProject:
                    self.assertTrue((kRoot / words[0]).stat().st_mode & 0o100, "is not executable")
                else:
                    self.assertTrue(words[0] == "efimd" or kBuild.match(command) or
                                    kInstall.match(command), "is run by no test")

    def test_the_line_that_puts_efimd_on_the_path_does_so(self):
        install, = (command for command, _ in self.lines if kInstall.match(command))
        with private_daemon(self.efimd) as environment:
            subprocess.run(["bash", "-c", install], cwd=kRoot, env=environment, check=True)
            link = pathlib.Path(environment["HOME"], ".local/bin/efimd")
            self.assertEqual(link.readlink(), kRoot / "build/release/daemon/cli/efimd")

    def test_efimd_commands_end_as_the_readme_says(self):
        commands = [line for line in self.lines if line[0].startswith("efimd ")]
        self.assertGreater(len(commands), 8)
        with private_daemon(self.efimd) as environment:
            serving = None
            for command, comment in commands:
                with self.subTest(command):
                    if command == "efimd serve":
                        serving = self.start(command, environment)
                        continue
                    done = subprocess.run(shlex.split(command), cwd=kRoot, env=environment,
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                          timeout=kPatienceS, check=False)
                    self.assertEqual(done.returncode, expected_status(comment),
                                     done.stdout + done.stderr)
            self.assertIsNotNone(serving, "the README does not show efimd serve")
            self.assertEqual(serving.wait(kPatienceS), 0)

    def start(self, command, environment):
        """The daemon in the foreground, once it answers."""
        serving = subprocess.Popen(shlex.split(command), cwd=kRoot, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(serving.kill)
        deadline = time.monotonic() + kPatienceS
        while subprocess.run(["efimd", "status"], env=environment, stdin=subprocess.DEVNULL,
                             capture_output=True, check=False).returncode != 0:
            self.assertIsNone(serving.poll(), f"{command} ended at once")
            self.assertLess(time.monotonic(), deadline, "the daemon does not answer")
            time.sleep(0.02)  # the pace of asking; it decides nothing
        return serving


class TheReading(unittest.TestCase):
    def test_commands_are_read_with_their_comments_from_shell_blocks_only(self):
        readme = "```sh\nefimd a --b # exits 1: no\n\nefimd c\n```\n```lua\nefimd d\n```\n"
        self.assertEqual(list(shell_lines(readme)), [("efimd a --b", "exits 1: no"), ("efimd c", "")])

    def test_a_comment_gives_the_expected_status(self):
        self.assertEqual([expected_status(c) for c in ("", "exits 2", "shows it; exits 1 when…")],
                         [0, 2, 1])


if __name__ == "__main__":
    ReadmeCommands.efimd = sys.argv.pop(1)
    sys.exit(unittest.main())

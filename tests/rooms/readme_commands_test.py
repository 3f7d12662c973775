#!/usr/bin/env python3
"""Every command in the shell blocks of README.md and docs/ is run, and ends as the page says: with 0, or as its comment "exits N" says.

    readme_commands_test.py EFIMD EFIMD_BENCH

`efimd` and `efimd-bench` commands run in the order in which they stand on their page, in the source tree, with a daemon and folders of their own. `efimd
serve` stays in the foreground: it is started, and must end well when `efimd stop` has come.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "tests" / "support"))
from docs import pages, shell_lines, text_of  # noqa: E402
from private_daemon import private_daemon, small_model  # noqa: E402

kPatienceS = 180
# Commands that set up or test the whole project; scripts/test runs the builds, and its own test is that it ends well.
kProject = {"scripts/bench", "scripts/deps", "scripts/demo", "scripts/install", "scripts/test"}
kPrograms = {"efimd", "efimd-bench"}
kBuild = re.compile(r"(cmake --preset|cmake --build --preset|ctest --preset) (release|debug|asan|tsan)$")


def expected_status(comment):
    said = re.search(r"\bexits (\d)", comment)
    return int(said[1]) if said else 0


class ReadmeCommands(unittest.TestCase):
    efimd = bench = None

    @classmethod
    def setUpClass(cls):
        cls.lines = {page: list(shell_lines(text_of(kRoot, page))) for page in pages(kRoot)}

    def every_line(self):
        return [(page, command) for page, lines in self.lines.items() for command, _ in lines]

    def test_every_command_is_known_to_this_test(self):
        for page, command in self.every_line():
            with self.subTest(f"{page}: {command}"):
                words = shlex.split(command)
                if words[0] in kProject:
                    self.assertTrue((kRoot / words[0]).stat().st_mode & 0o100, "is not executable")
                else:
                    self.assertTrue(words[0] in kPrograms or kBuild.match(command), "is run by no test")

    def test_efimd_commands_end_as_their_page_says(self):
        commands = {page: [line for line in lines if line[0].split()[0] in kPrograms]
                    for page, lines in self.lines.items()}
        for page, least in [("README.md", 6), ("docs/commands.md", 20), ("docs/benchmarks.md", 7)]:
            self.assertGreaterEqual(len(commands[page]), least, page)
        for page, lines in commands.items():
            if lines:
                self.run_page(page, lines)

    def run_page(self, page, lines):
        with private_daemon(self.efimd) as environment:
            environment["PATH"] = f"{pathlib.Path(self.bench).parent}{os.pathsep}{environment['PATH']}"
            if page == "docs/benchmarks.md":  # that they work is the subject, not what they measure
                environment["EFIMD_MODEL"] = str(small_model(self.efimd))
            # A page that does not show it has its daemon from here.
            is_shown = any(command == "efimd serve" for command, _ in lines)
            serving = None if is_shown else self.start("efimd serve", environment)
            for command, comment in lines:
                with self.subTest(f"{page}: {command}"):
                    if command == "efimd serve":
                        serving = self.start(command, environment)
                        continue
                    # It asks a terminal, and this is none; tests/editors/setup_test.py does what it says. `efimd setup --dry-run`
                    # stands on a page, and measures.
                    words = shlex.split(command) + (["--dry-run", "--no-model"] if command == "efimd setup" else [])
                    done = subprocess.run(words, cwd=kRoot, env=environment,
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                          timeout=kPatienceS, check=False)
                    self.assertEqual(done.returncode, expected_status(comment),
                                     done.stdout + done.stderr)
            if any(command == "efimd stop" for command, _ in lines):
                self.assertEqual(serving.wait(kPatienceS), 0)
            else:
                serving.terminate()
                serving.wait(kPatienceS)

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
    def test_a_comment_gives_the_expected_status(self):
        self.assertEqual([expected_status(c) for c in ("", "exits 2", "shows it; exits 1 when…")],
                         [0, 2, 1])


if __name__ == "__main__":
    ReadmeCommands.efimd, ReadmeCommands.bench = sys.argv[1:3]
    del sys.argv[1:3]
    sys.exit(unittest.main())

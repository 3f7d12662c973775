#!/usr/bin/env python3
"""scripts/deps, scripts/configure and scripts/install on machines that are not as they should be, with programs that only say what they were asked."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

kScripts = pathlib.Path(__file__).resolve().parents[2] / "scripts"
kKnown = "echo '  Candidate: 1.0'"


class Script(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="efimd with blanks ")))
        (self.folder / "scripts").mkdir()
        (self.folder / "bin").mkdir()

    def program(self, name, text):
        """One that notes its arguments, and does `text`."""
        file = self.folder / "bin" / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.folder}/asked"\n{text}\n', encoding="utf-8")
        file.chmod(0o755)

    def run_script(self, name, *arguments, without=None):
        shutil.copy(kScripts / name, self.folder / "scripts" / name)
        (self.folder / "asked").write_text("", encoding="utf-8")
        environment = os.environ | {"PATH": f"{self.folder}/bin{os.pathsep}{os.environ['PATH']}"}
        environment.pop(without, None)
        return subprocess.run([self.folder / "scripts" / name, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)

    def asked(self):
        return (self.folder / "asked").read_text(encoding="utf-8")


class Deps(Script):
    def setUp(self):
        super().setUp()
        self.program("dpkg-query", "exit 1")
        self.program("sudo", 'exec "$@"')
        self.program("apt-cache", kKnown)
        self.program("apt-get", "")

    def test_a_source_that_is_out_of_order_stops_nothing(self):
        self.program("apt-get", '[ "$2" != update ] || exit 100')
        ran = self.run_script("deps")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("goes on with the lists", ran.stderr)
        self.assertRegex(self.asked(), "apt-get -q install .*libboost1.81-dev")

    def test_a_release_with_a_later_boost_gets_that(self):
        self.program("apt-cache", f'[ "$2" = libboost1.81-dev ] || {kKnown}')
        self.assertEqual(self.run_script("deps").returncode, 0)
        self.assertRegex(self.asked(), r"apt-get -q install .* libboost-dev ")

    def test_a_package_that_is_not_to_be_had_is_named_and_nothing_is_installed(self):
        self.program("apt-cache", f'[ "$2" = glslang-tools ] || {kKnown}')
        ran = self.run_script("deps")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("apt finds no glslang-tools here", ran.stderr)
        self.assertNotIn("-q install", self.asked())

    def test_who_may_not_install_gets_the_command_for_who_may(self):
        self.program("apt-get", '[ "$2" = update ]')
        ran = self.run_script("deps")
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, "as root, run: apt-get install --no-install-recommends .*cmake")


class Configure(Script):
    def configured(self, home):
        cache = self.folder / "build/release/CMakeCache.txt"
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n", encoding="utf-8")

    def options(self):
        self.program("cmake", "")
        ran = self.run_script("configure", "release")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return self.asked().strip()

    def test_a_new_folder_compiles_rooms_as_one_and_another_stays_as_it_is(self):
        self.assertEqual(self.options(), "cmake --preset release -D EFIMD_UNITY=ON")
        self.configured(self.folder)
        self.assertEqual(self.options(), "cmake --preset release")

    def test_without_a_preset_it_says_what_it_takes(self):
        self.program("cmake", "")
        for arguments in ([], ["--help"]):
            ran = self.run_script("configure", *arguments)
            self.assertEqual((ran.returncode, ran.stderr), (2, "usage: scripts/configure PRESET [CMAKE OPTION ...]\n"))
            self.assertEqual(self.asked(), "")

    def test_a_folder_of_another_place_is_configured_anew(self):
        for home in ("/no/longer/there", tempfile.gettempdir()):
            self.configured(home)
            self.assertEqual(self.options(), "cmake --preset release --fresh -D EFIMD_UNITY=ON")


class Install(Script):
    def test_what_is_no_folder_installs_nothing(self):
        self.program("cmake", "")
        for arguments in (["--help"], ["-h"], ["/opt", "/usr"]):
            ran = self.run_script("install", *arguments)
            self.assertEqual(ran.returncode, 2, arguments)
            self.assertIn("usage: scripts/install [PREFIX]", ran.stderr)
            self.assertEqual(self.asked(), "")

    def test_without_a_home_folder_it_asks_for_a_prefix(self):
        self.program("cmake", "")
        ran = self.run_script("install", without="HOME")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("name a PREFIX", ran.stderr)
        self.assertEqual(self.asked(), "")


class Demo(unittest.TestCase):
    def test_styles_are_for_terminals_that_take_them_and_people_who_want_them(self):
        sys.path.insert(0, str(kScripts))
        from demo import takes_styles
        self.assertTrue(takes_styles({"TERM": "xterm"}, True))
        self.assertTrue(takes_styles({"TERM": "xterm", "NO_COLOR": ""}, True))
        for environment, tty in (({"TERM": "xterm"}, False), ({"TERM": "dumb"}, True), ({}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, True)):
            self.assertFalse(takes_styles(environment, tty), (environment, tty))


if __name__ == "__main__":
    sys.exit(unittest.main())

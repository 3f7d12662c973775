#!/usr/bin/env python3
"""The programs that are installed have what cmake/hardening.cmake asks for.

usage: hardening_test.py PROGRAM...
"""

import pathlib
import platform
import re
import subprocess
import sys
import unittest

programs = []
kMarks = "x86 feature: IBT, SHSTK"  # of control-flow enforcement, as hardening-check wants them


def said(*command):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True).stdout


class Hardening(unittest.TestCase):
    def each(self):
        for program in programs:
            with self.subTest(program.rsplit("/", 1)[-1]):
                yield program

    def test_addresses_are_drawn_at_each_start(self):
        for program in self.each():
            self.assertRegex(said("readelf", "-hW", program), r"Type:\s+DYN")

    def test_the_stack_holds_no_code(self):
        for program in self.each():
            flags = re.search(r"GNU_STACK(?:\s+0x\w+){5}\s+(\w+)", said("readelf", "-lW", program))
            self.assertEqual(flags and flags[1], "RW")

    def test_symbols_are_bound_before_main_and_read_only_after(self):
        for program in self.each():
            self.assertIn("GNU_RELRO", said("readelf", "-lW", program))
            self.assertRegex(said("readelf", "-dW", program), r"BIND_NOW|FLAGS_1.*NOW")

    def test_stacks_and_copies_are_checked(self):
        for program in self.each():
            symbols = said("readelf", "--dyn-syms", "-W", program)
            self.assertIn("__stack_chk_fail", symbols)
            self.assertRegex(symbols, r"__(memcpy|memmove|snprintf|vsnprintf|printf|fprintf|read|recv)_chk")

    @unittest.skipUnless(platform.machine() == "x86_64", "jumps are marked otherwise elsewhere")
    def test_jumps_have_marked_targets(self):
        for program in self.each():
            self.assertIn(kMarks, said("readelf", "-nW", program))

    @unittest.skipUnless(platform.machine() == "x86_64", "jumps are marked otherwise elsewhere")
    def test_what_the_loader_jumps_to_is_marked(self):
        for program in self.each():
            entry = re.search(r"Entry point address:\s+0x(\w+)", said("readelf", "-hW", program))[1]
            called = re.findall(r"\((?:INIT|FINI)\)\s+0x(\w+)", said("readelf", "-dW", program))
            for address in {int(entry, 16), *(int(each, 16) for each in called)}:
                first = said("objdump", "-d", f"--start-address={address}", f"--stop-address={address + 4}", program)
                self.assertIn("endbr64", first)

    @unittest.skipUnless(platform.machine() == "x86_64", "jumps are marked otherwise elsewhere")
    def test_no_object_is_marked_that_was_not_built_so(self):
        """The linker was told to mark the programs, for the system's start files have no marks."""
        build = pathlib.Path(programs[0]).parents[2]
        objects = [*build.glob("**/libefimd_*.a"), *build.glob("**/CMakeFiles/efimd*.dir/**/*.o")]
        self.assertGreater(len(objects), 20)
        for each in objects:
            notes = said("readelf", "-nW", each)
            self.assertEqual(notes.count(kMarks), max(notes.count("File: "), 1), each)


if __name__ == "__main__":
    programs = sys.argv[1:]
    sys.argv[1:] = []
    unittest.main()

#!/usr/bin/env python3
"""README.md and docs/ are short where they must be, name files and functions that are there, and list what the daemon sends."""

import pathlib
import sys
import tempfile
import unittest

from docs import has_function, missing_files, pages, shell_lines, stations, text_of

kRoot = pathlib.Path(__file__).resolve().parents[2]
kReadmeBytesMax = 8192


class TheReadme(unittest.TestCase):
    def test_it_is_short(self):
        self.assertLessEqual((kRoot / "README.md").stat().st_size, kReadmeBytesMax)

    def test_the_two_commands_come_first(self):
        readme = text_of(kRoot, "README.md")
        self.assertEqual([command for command, _ in shell_lines(readme)][:2], ["scripts/demo", "scripts/test"])
        self.assertLess(readme.index("scripts/test"), 1000)

    def test_it_shows_the_way_of_a_keystroke_and_every_page(self):
        readme = text_of(kRoot, "README.md")
        self.assertIn(len(stations(readme)), range(8, 15))
        for page in pages(kRoot):
            if page != "README.md":
                self.assertIn(f"]({page})", readme)


class ThePages(unittest.TestCase):
    def test_every_file_that_they_name_is_there(self):
        self.assertGreater(len(pages(kRoot)), 10)
        self.assertEqual({page: gone for page in pages(kRoot) if (gone := missing_files(kRoot, page))}, {})

    def test_every_station_is_a_function_in_the_file_beside_it(self):
        for page, least in [("README.md", 10), ("docs/architecture.md", 15)]:
            found = stations(text_of(kRoot, page))
            self.assertGreaterEqual(len(found), least)
            self.assertEqual([pair for pair in found if not has_function(kRoot, *pair)], [])


class TheLicence(unittest.TestCase):
    def test_the_extension_of_vs_code_has_it_word_for_word(self):
        self.assertEqual(text_of(kRoot, "editors/vscode/LICENSE"), text_of(kRoot, "LICENSE"))


class TheReading(unittest.TestCase):
    def test_files_are_sought_beside_the_page_when_linked_and_from_the_root_when_named(self):
        with tempfile.TemporaryDirectory() as root:
            pathlib.Path(root, "docs").mkdir()
            pathlib.Path(root, "docs/a.md").write_text(
                "[b](b.md) [c](c.md#x) [web](https://d.org/e.md) `docs/b.md` `f/g.cpp` `daemon/*.h`\n", encoding="utf-8")
            pathlib.Path(root, "docs/b.md").touch()
            self.assertEqual(missing_files(root, "docs/a.md"), ["c.md", "f/g.cpp"])

    def test_stations_are_read_from_tables_and_drawings(self):
        self.assertEqual(stations("| 1 | io | reads | `A::b` | `c/d.cpp` |\n"), [("A::b", "c/d.cpp")])
        self.assertEqual(stations("   |   A::b      c/d.cpp   why\n"), [("A::b", "c/d.cpp")])
        self.assertEqual(stations("as `c/d.cpp` says\n"), [])

    def test_a_function_that_is_gone_is_missed(self):
        with tempfile.TemporaryDirectory() as root:
            pathlib.Path(root, "a.cpp").write_text("int A::there(int a) {\n", encoding="utf-8")
            self.assertTrue(has_function(root, "A::there", "a.cpp"))
            self.assertFalse(has_function(root, "A::gone", "a.cpp"))
            self.assertFalse(has_function(root, "here", "a.cpp"))
            self.assertFalse(has_function(root, "A::there", "b.cpp"))

    def test_commands_are_read_with_their_comments_from_shell_blocks_only(self):
        page = "```sh\nefimd a --b # exits 1: no\n\nefimd c\n```\n```lua\nefimd d\n```\n"
        self.assertEqual(list(shell_lines(page)), [("efimd a --b", "exits 1: no"), ("efimd c", "")])


if __name__ == "__main__":
    sys.exit(unittest.main())

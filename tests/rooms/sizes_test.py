#!/usr/bin/env python3
"""Files, folders and sentences stay as small as CONTRIBUTING.md asks (a sentence may have half as many words again)."""

import pathlib
import sys
import tempfile
import unittest

from sizes import full_folders, kUnitsMax, long_files, long_sentences, sentences, tracked

kRoot = pathlib.Path(__file__).resolve().parents[2]


def paths(*names):
    return [pathlib.PurePosixPath(name) for name in names]


class TheMeasuring(unittest.TestCase):
    def test_a_file_over_its_limit_is_named_and_data_has_none(self):
        with tempfile.TemporaryDirectory() as root:
            for name, lines in [("base/a.cpp", 350), ("base/b.cpp", 351), ("tests/c.py", 501), ("tests/d.golden", 999)]:
                file = pathlib.Path(root, name)
                file.parent.mkdir(exist_ok=True)
                file.write_text("\n" * lines, encoding="utf-8")
            found = list(long_files(root, paths("base/a.cpp", "base/b.cpp", "tests/c.py", "tests/d.golden")))
            self.assertEqual(found, [("base/b.cpp", 351), ("tests/c.py", 501)])

    def test_a_header_and_its_source_are_one_unit(self):
        of = lambda count: paths(*(f"base/{n}{end}" for n in range(count) for end in (".h", ".cpp")))
        self.assertEqual(full_folders(of(kUnitsMax)), [])
        self.assertEqual(full_folders(of(kUnitsMax + 1)), [("base", kUnitsMax + 1)])

    def test_a_sentence_goes_over_lines_and_ends_with_its_comment(self):
        text = "/// One two\n/// three. Four\nint a;\nint b;  ///< five\nint c;  ///< six\n"
        self.assertEqual(list(sentences(text)), [(1, "One two three."), (1, "Four"), (4, "five"), (5, "six")])

    def test_tables_and_indented_lists_are_no_sentences(self):
        self.assertEqual(list(sentences("///   KV-1  A page.\n/// q   [H][E]   f32\n")), [])

    def test_a_long_sentence_is_named_with_its_place(self):
        with tempfile.TemporaryDirectory() as root:
            pathlib.Path(root, "base").mkdir()
            pathlib.Path(root, "base/a.h").write_text("int a;\n/// " + "word " * 31 + "\n", encoding="utf-8")
            fault, = long_sentences(root, paths("base/a.h"))
            self.assertTrue(fault.startswith("base/a.h:2: 31: word"), fault)


class TheTree(unittest.TestCase):
    def setUp(self):
        self.paths = tracked(kRoot)

    def test_files_are_short(self):
        self.assertEqual(list(long_files(kRoot, self.paths)), [])

    def test_folders_have_few_units(self):
        self.assertEqual(full_folders(self.paths), [])

    def test_sentences_of_headers_are_short(self):
        self.assertEqual(list(long_sentences(kRoot, self.paths)), [])

    def test_sentences_were_found(self):
        header = kRoot / "engine" / "kv" / "kv_pool.h"
        self.assertGreater(len(list(sentences(header.read_text(encoding="utf-8")))), 20)


if __name__ == "__main__":
    sys.exit(unittest.main())

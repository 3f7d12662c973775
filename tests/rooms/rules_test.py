#!/usr/bin/env python3
"""Every numbered rule that the tree cites is defined exactly once, and every Markdown file that it names is there."""

import pathlib
import sys
import tempfile
import unittest

from rules import faults_of_names, faults_of_rules, read_rules

kRoot = pathlib.Path(__file__).resolve().parents[2]


def in_tree(check, files):
    """What `check` says of a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return check(folder)


class TheCheckOfRules(unittest.TestCase):
    def faults(self, files):
        return in_tree(faults_of_rules, files)

    def test_a_rule_may_be_defined_at_a_files_head_or_in_a_list(self):
        self.assertEqual(self.faults({"a.h": "///   KV-1  A page.\n", "b.cpp": "// By KV-1.\n"}), [])
        self.assertEqual(self.faults({"docs/a.md": "- **KV-1** A page.\n", "b.py": "# KV-1\n"}), [])

    def test_a_rule_that_is_only_cited_is_named_with_its_place(self):
        self.assertEqual(self.faults({"a/b.cpp": "int a;\n// KV-1: why\n"}),
                         ["a/b.cpp:2: KV-1 is defined 0 times"])

    def test_a_rule_that_is_defined_twice_is_named_with_both_places(self):
        self.assertEqual(self.faults({"a.h": "//  KV-1  A page.\n", "b.md": "- **KV-1** A page.\n"}),
                         ["a.h:1, b.md:1: KV-1 is defined 2 times"])

    def test_one_definition_does_not_serve_another_rule(self):
        faults = self.faults({"a.h": "//  KV-1  A page, unlike KV-2.\n"})
        self.assertEqual(faults, ["a.h:1: KV-2 is defined 0 times"])

    def test_a_name_of_no_family_is_refused(self):
        fault, = self.faults({"a.h": "// QX-3\n"})
        self.assertIn("no known family", fault)

    def test_encodings_licences_and_longer_names_are_no_rules(self):
        self.assertEqual(self.faults({"a.h": "// UTF-8, SHA-1, GPL-3, AVX-512, x86-64, 2026-11-20, B-tree, A-1b\n"}), [])

    def test_built_and_installed_files_are_not_read(self):
        self.assertEqual(self.faults({"build/a.h": "// KV-1\n", "node_modules/b.md": "KV-2"}), [])


class TheCheckOfNames(unittest.TestCase):
    def faults(self, files):
        return in_tree(faults_of_names, files)

    def test_a_named_file_is_sought_from_the_root_and_beside_its_reader(self):
        self.assertEqual(self.faults({"docs/a.md": "see [b](b.md)\n", "docs/b.md": "", "c.h": "// docs/b.md\n"}), [])

    def test_a_file_that_is_not_there_is_named(self):
        self.assertEqual(self.faults({"a.h": "int a;  // see gone.md, section 2\n"}), ["a.h:1: there is no gone.md"])
        self.assertEqual(len(self.faults({"docs/a.md": "[b](../gone.md#top)\n"})), 1)

    def test_text_of_a_program_and_the_web_name_no_files_of_the_tree(self):
        self.assertEqual(self.faults({"a.cpp": 'open("gone.md");\n', "b.md": "https://example.org/gone.md\n"}), [])


class TheTree(unittest.TestCase):
    def test_every_rule_is_defined_once(self):
        self.assertEqual(faults_of_rules(kRoot), [])

    def test_the_rules_were_found(self):
        defined, cited = read_rules(kRoot)
        self.assertGreater(len(defined), 40)
        self.assertGreater(sum(map(len, cited.values())), 150)

    def test_every_markdown_file_that_is_named_is_there(self):
        self.assertEqual(faults_of_names(kRoot), [])


if __name__ == "__main__":
    sys.exit(unittest.main())

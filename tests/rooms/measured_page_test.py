#!/usr/bin/env python3
"""docs/performance.md has a place for each table of scripts/bench, which replaces only its own."""

import importlib.machinery
import importlib.util
import pathlib
import re
import sys
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "scripts"))  # where the program finds its parts
loader = importlib.machinery.SourceFileLoader("bench", str(kRoot / "scripts/bench"))
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench", loader))
loader.exec_module(bench)

kBlock = re.compile(r"<!-- measured by scripts/bench: (\w+) -->\n(.*?)<!-- end -->\n", re.S)
kPage = (kRoot / "docs/performance.md").read_text(encoding="utf-8")


class MeasuredPage(unittest.TestCase):
    def test_each_part_has_one_place(self):
        self.assertEqual(sorted(name for name, _ in kBlock.findall(kPage)), sorted(bench.PARTS))

    def test_each_place_says_what_was_measured_when_and_on_what(self):
        for name, text in kBlock.findall(kPage):
            caption = text.split("\n")[0]
            with self.subTest(name):
                self.assertTrue(caption.startswith(bench.PARTS[name].__doc__), caption)
                self.assertRegex(caption, r"\d+ cores of .+, \d{2} \w+ \d{4}, efimd [0-9a-f]{7,}")

    def test_only_its_own_table_is_replaced(self):
        page = ("above\n<!-- measured by scripts/bench: a -->\nold\n<!-- end -->\nbetween\n"
                "<!-- measured by scripts/bench: b -->\n<!-- end -->\nbelow\n")
        self.assertEqual(bench.written(page, "b", "new\n"), page.replace("b -->\n", "b -->\nnew\n"))
        self.assertEqual(bench.written(page, "a", "new\n"), page.replace("old\n", "new\n"))

    def test_no_table_is_written_by_hand(self):
        by_hand = [line for line in kBlock.sub("", kPage).splitlines() if line.startswith("|")]
        self.assertEqual(by_hand, [])

    def test_a_page_without_a_place_is_refused_with_the_lines_to_put_back(self):
        for page in ("", "<!-- measured by scripts/bench: a -->\nno end\n"):
            with self.assertRaisesRegex(bench.Failed, "measured by scripts/bench: a"):
                bench.written(page, "a", "new\n")


class Peers(unittest.TestCase):
    def test_ratios_are_of_pairs_not_of_means(self):
        self.assertEqual(bench.engine.spread([1.0, 2.0, 4.0]), "2.00 (1.00-4.00)")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""A second run of a failed test counts only for what is in quarantine, and nobody stays there for ever."""

import contextlib
import datetime
import io
import pathlib
import sys
import tempfile
import unittest

kRoot = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "scripts"))
import test_summary  # noqa: E402

kToday = datetime.date(2026, 12, 1)


def junit(**tests):
    """A JUnit file with a test of each name and status."""
    cases = "".join(f'<testcase name="{name}" status="{status}"/>' for name, status in tests.items())
    return f"<testsuite>{cases}</testsuite>"


def summary(first, again=None, quarantine=""):
    """(exit status, what was printed) for one suite."""
    with tempfile.TemporaryDirectory() as folder:
        suite = pathlib.Path(folder, "release")
        suite.mkdir()
        (suite / "junit.xml").write_text(first, encoding="utf-8")
        if again:
            (suite / "junit-again.xml").write_text(again, encoding="utf-8")
        quarantined = pathlib.Path(folder, "quarantine.txt")
        quarantined.write_text(quarantine, encoding="utf-8")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = test_summary.main([suite / "junit.xml"], quarantined, kToday)
        return status, out.getvalue()


class TheSummary(unittest.TestCase):
    def test_counts_what_ran_and_fails_if_a_test_did(self):
        status, text = summary(junit(a="run", b="fail"))
        self.assertEqual(status, 1)
        self.assertIn("FAILED   release/b", text)
        self.assertTrue(text.endswith("1 passed, 1 failed, 0 skipped\n"))

    def test_a_second_run_does_not_hide_a_failure(self):
        status, text = summary(junit(a="run", b="fail"), junit(b="run"))
        self.assertEqual(status, 1)
        self.assertIn("release/b: a second run, alone, passed; the first counts", text)

    def test_a_second_run_counts_for_what_is_in_quarantine(self):
        status, text = summary(junit(b="fail"), junit(b="run"), "# why\nb 2026-11-23 an editor's own bug\n")
        self.assertEqual(status, 0)
        self.assertIn("a second run counts: an editor's own bug", text)
        self.assertEqual(summary(junit(b="fail"), junit(b="fail"), "b 2026-11-23 why\n")[0], 1)

    def test_quarantine_ends_after_ninety_days(self):
        status, text = summary(junit(b="fail", c="run"), junit(b="run"), "b 2026-08-01 why\n")
        self.assertEqual(status, 1)
        self.assertIn("has been there for 122 days", text)

    def test_a_line_without_a_day_or_a_reason_is_a_failure(self):
        for line in ("b\n", "b soon because\n", "b 2026-11-23\n"):
            self.assertEqual(summary(junit(c="run"), None, line)[0], 1, line)

    def test_the_tree_has_a_list_that_is_right(self):
        text = (kRoot / "tests" / "quarantine.txt").read_text(encoding="utf-8")
        self.assertEqual(test_summary.quarantined(text, datetime.date.today())[1], [])


if __name__ == "__main__":
    sys.exit(unittest.main())

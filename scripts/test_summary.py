#!/usr/bin/env python3
"""Adds up JUnit files that ctest wrote: names each test that failed or was skipped, the latter with its reason, and ends with
one line "N passed, N failed, N skipped". A junit-again.xml beside a file has the tests that were run once more; that run counts.
Exit status 1 when a test failed, a file is missing or nothing ran.
"""

import pathlib
import sys
import xml.etree.ElementTree as xml


def skipped_itself(case):
    """Whether the test ended as one that skips. One whose program was not found did not run either, but failed."""
    mark = case.find("skipped")
    return mark is not None and mark.get("message", "").startswith("SKIP_")


def reason_of(case):
    """The last line that the test printed."""
    printed = [line for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    return printed[-1] if printed else "no reason given"


def cases_of(path):
    """The test cases of a file, those that were run once more as they ended then."""
    again = path.with_name("junit-again.xml")
    second = {case.get("name"): case for case in xml.parse(again).iter("testcase")} if again.is_file() else {}
    for case in xml.parse(path).iter("testcase"):
        name = case.get("name")
        if name in second:
            print(f"AGAIN    {path.parent.name}/{name}: it failed at first; what counts is a second run, alone")
        yield second.get(name, case)


def main(paths):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for path in map(pathlib.Path, paths):
        suite = path.parent.name
        if not path.is_file():
            print(f"FAILED   {suite}: its results are missing ({path})")
            counts["failed"] += 1
            continue
        for case in cases_of(path):
            status, name = case.get("status"), f"{suite}/{case.get('name')}"
            if status == "run":
                counts["passed"] += 1
            elif skipped_itself(case):
                counts["skipped"] += 1
                print(f"SKIPPED  {name}: {reason_of(case)}")
            else:
                counts["failed"] += 1
                print(f"FAILED   {name}")
    print(", ".join(f"{number} {what}" for what, number in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

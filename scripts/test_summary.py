#!/usr/bin/env python3
"""Adds up JUnit files that ctest wrote. Names each test that failed or was skipped, the latter with its reason. Ends with one
line "N passed, N failed, N skipped". Exit status 1 if a test failed, a file is missing or nothing ran.

A junit-again.xml beside a file has tests that failed and were run once more. That second run counts only for a test that
tests/quarantine.txt names, with a day at most 90 days ago and a reason.
"""

import datetime
import pathlib
import sys
import xml.etree.ElementTree as xml

kQuarantine = pathlib.Path(__file__).resolve().parents[1] / "tests" / "quarantine.txt"
kQuarantineDays = 90


def quarantined(text, today):
    """({test: reason}, problems) of a quarantine list on a day: a line that is wrong or too old is a problem, and counts not."""
    tests, problems = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, day, reason = (line.split(maxsplit=2) + ["", ""])[:3]
        try:
            age = (today - datetime.date.fromisoformat(day)).days
        except ValueError:
            age = None
        if age is None or not reason:
            problems.append(f"line {number}: want a test's name, a day as 2026-01-31 and a reason")
        elif not 0 <= age <= kQuarantineDays:
            problems.append(f"line {number}: {name} has been there for {age} days, {kQuarantineDays} are allowed")
        else:
            tests[name] = reason
    return tests, problems


def skipped_itself(case):
    """Whether the test ended as one that skips. One whose program was not found did not run either, but failed."""
    mark = case.find("skipped")
    return mark is not None and mark.get("message", "").startswith("SKIP_")


def reason_of(case):
    """The last line that the test printed."""
    printed = [line for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    return printed[-1] if printed else "no reason given"


def cases_of(path, allowed):
    """The test cases of a file; those in quarantine as their second run ended, if there was one."""
    again = path.with_name("junit-again.xml")
    second = {case.get("name"): case for case in xml.parse(again).iter("testcase")} if again.is_file() else {}
    for case in xml.parse(path).iter("testcase"):
        name = case.get("name")
        if name in second and name in allowed:
            print(f"AGAIN    {path.parent.name}/{name}: it failed, a second run counts: {allowed[name]}")
            yield second[name]
            continue
        if name in second:
            how = "passed" if second[name].get("status") == "run" else "failed"
            print(f"AGAIN    {path.parent.name}/{name}: a second run, alone, {how}; the first counts")
        yield case


def main(paths, quarantine=kQuarantine, today=None):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    allowed, problems = quarantined(quarantine.read_text(encoding="utf-8") if quarantine.is_file() else "",
                                    today or datetime.date.today())
    for problem in problems:
        print(f"FAILED   {quarantine.name}: {problem}")
        counts["failed"] += 1
    for path in map(pathlib.Path, paths):
        suite = path.parent.name
        if not path.is_file():
            print(f"FAILED   {suite}: its results are missing ({path})")
            counts["failed"] += 1
            continue
        for case in cases_of(path, allowed):
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

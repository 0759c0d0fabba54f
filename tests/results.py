"""Summarises a JUnit file, in lines that tests/run.sh reads.

counts PASSED FAILED, then "failed NAME (HOW) REASON" for each test that failed, in its body, setup
or teardown, "repeated NAME" for each that was run a second time since its first attempt failed,
and "slow MM:SS FILE (TESTS)" for the slowest files. Exits with 1 if no test ran.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from xml.etree.ElementTree import Element, parse

SHOWN = 8
"""Number of slow files to print."""
REASON = 240
"""Characters of a failure's message to print: CI shows the end of the output only."""


def counts(suite: Element) -> tuple[int, int]:
    """(Passed, failed); a skipped test counts as failed, since it verified nothing."""
    every, errors, failures, skipped = (
        int(suite.get(name, 0)) for name in ("tests", "errors", "failures", "skipped")
    )
    return max(every - errors - failures - skipped, 0), errors + failures + skipped


def name_of(case: Element) -> str:
    """A test's file and name."""
    return f"{case.get('classname')}::{case.get('name')}"


def failed(suite: Element) -> list[str]:
    """The names of failed tests, how they failed, and the beginning of the message."""
    found = []
    for case in suite.iter("testcase"):
        wrong = [child for child in case if child.tag in ("failure", "error", "skipped")]
        if wrong:
            how = ", ".join(sorted({child.tag for child in wrong}))
            why = " ".join(wrong[0].get("message", "").split())[:REASON]
            found.append(f"{name_of(case)} ({how}) {why}".rstrip())
    return found


def repeated(suite: Element) -> list[str]:
    """The names of tests whose first attempt failed (tests/conftest.py)."""
    return [
        name_of(case)
        for case in suite.iter("testcase")
        if case.find("properties/property[@name='attempt']") is not None
    ]


def slowest(suite: Element) -> list[tuple[float, str, int]]:
    """(Seconds, file, number of tests), slowest first."""
    files: dict[str, list[float]] = defaultdict(list)
    for case in suite.iter("testcase"):
        files[case.get("classname", "")].append(float(case.get("time", 0)))
    return sorted(((sum(of), name, len(of)) for name, of in files.items()), reverse=True)


def main(path: str) -> int:
    """Print the lines."""
    suite = parse(path).find("testsuite")
    assert suite is not None
    print("counts", *counts(suite))
    for name in failed(suite):
        print("failed", name)
    for name in repeated(suite):
        print("repeated", name)
    for seconds, name, tests in slowest(suite)[:SHOWN]:
        print(f"slow {int(seconds) // 60:2}:{int(seconds) % 60:02} {name} ({tests})")
    return 0 if sum(counts(suite)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

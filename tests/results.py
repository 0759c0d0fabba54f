"""Summarises a JUnit file, in lines that tests/run.sh reads.

counts PASSED FAILED, then "failed NAME" for each test that failed, in its body, setup or teardown,
and "slow MM:SS FILE (TESTS)" for the slowest files. Exits with 1 if no test ran.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from xml.etree.ElementTree import Element, parse

SHOWN = 8
"""Number of slow files to print."""


def counts(suite: Element) -> tuple[int, int]:
    """(Passed, failed); a skipped test counts as failed, since it verified nothing."""
    every, errors, failures, skipped = (
        int(suite.get(name, 0)) for name in ("tests", "errors", "failures", "skipped")
    )
    return max(every - errors - failures - skipped, 0), errors + failures + skipped


def failed(suite: Element) -> list[str]:
    """The names of failed tests, and how they failed."""
    found = []
    for case in suite.iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        if kinds:
            how = ", ".join(sorted(kinds))
            found.append(f"{case.get('classname')}::{case.get('name')} ({how})")
    return found


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
    for seconds, name, tests in slowest(suite)[:SHOWN]:
        print(f"slow {int(seconds) // 60:2}:{int(seconds) % 60:02} {name} ({tests})")
    return 0 if sum(counts(suite)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

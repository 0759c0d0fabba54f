"""What a JUnit file says, in lines that tests/run.sh reads.

counts PASSED FAILED, then "failed NAME" for each test that failed, in its body, before or after it,
and "slow MM:SS FILE (TESTS)" for the files that took longest. Exits with 1 when no test ran.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from xml.etree.ElementTree import Element, parse

SHOWN = 8
"""Files of tests whose time is told."""


def counts(suite: Element) -> tuple[int, int]:
    """(Passed, failed); a test that is skipped counts as failed, since it showed nothing."""
    every, errors, failures, skipped = (
        int(suite.get(name, 0)) for name in ("tests", "errors", "failures", "skipped")
    )
    return max(every - errors - failures - skipped, 0), errors + failures + skipped


def failed(suite: Element) -> list[str]:
    """The names of tests that failed, and how."""
    found = []
    for case in suite.iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        if kinds:
            how = ", ".join(sorted(kinds))
            found.append(f"{case.get('classname')}::{case.get('name')} ({how})")
    return found


def slowest(suite: Element) -> list[tuple[float, str, int]]:
    """(Seconds, file, number of tests), the longest first."""
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

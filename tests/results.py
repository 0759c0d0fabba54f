"""Summarises a JUnit file, in lines that tests/run.sh reads, or stores how long files took.

    python tests/results.py FILE               prints the lines
    python tests/results.py --save FILE…       updates tests/durations.json

The lines are "counts PASSED FAILED", then "failed NAME (HOW) REASON" for each test that failed, in
its body, setup or teardown, "repeated NAME REASON" for each that was run a second time since its
first attempt failed, and "slow MM:SS FILE (TESTS)" for the slowest files. A reason names the
processes that the kernel killed for want of memory. Exits with 1 if no test ran.

--save takes the results of runs on clusters, build/test-results/clusters-*.xml, and keeps what it
has of files that did not run.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, parse

ROOT = Path(__file__).parent
DURATIONS = ROOT / "durations.json"
LEAST, STEP = 20, 5
"""Seconds of the shortest file that is stored, and the unit, so that each run changes few lines."""
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
    lines = []
    for case in suite.iter("testcase"):
        failures = [child for child in case if child.tag in ("failure", "error", "skipped")]
        if failures:
            how = ", ".join(sorted({child.tag for child in failures}))
            message = failures[0].get("message") or ""
            last = 1 if stored(case, "first failure") is None else 2
            lines.append(f"{name_of(case)} ({how}) {reason(case, last, message)}".rstrip())
    return lines


def repeated(suite: Element) -> list[str]:
    """The names of tests whose first attempt failed (tests/conftest.py), and why."""
    failures = ((case, stored(case, "first failure")) for case in suite.iter("testcase"))
    return [
        f"{name_of(case)} {reason(case, 1, message)}".rstrip()
        for case, message in failures
        if message is not None
    ]


def reason(case: Element, attempt: int, message: str) -> str:
    """Why an attempt failed: its message, and the processes that the kernel killed meanwhile."""
    kills = stored(case, f"killed in attempt {attempt}")
    return shortened(message) + (f" [killed for memory: {kills}]" if kills else "")


def stored(case: Element, name: str) -> str | None:
    """The value of a test's property (tests/conftest.py); None without it."""
    element = case.find(f"properties/property[@name='{name}']")
    return None if element is None else element.get("value") or ""


def shortened(message: str) -> str:
    """The beginning of a failure's message, in one line."""
    return " ".join(message.split())[:REASON]


def slowest(suite: Element) -> list[tuple[float, str, int]]:
    """(Seconds, file, number of tests), slowest first."""
    files: dict[str, list[float]] = defaultdict(list)
    for case in suite.iter("testcase"):
        files[case.get("classname", "")].append(float(case.get("time", 0)))
    return sorted(((sum(of), name, len(of)) for name, of in files.items()), reverse=True)


def suite_in(path: str) -> Element:
    """The test suite of a JUnit file."""
    suite = parse(path).find("testsuite")
    assert suite is not None
    return suite


def durations(before: Mapping[str, int], suites: Iterable[Element]) -> dict[str, int]:
    """Seconds by file, such as "slurm/test_ends"; the longest of a file that ran several times."""
    measured: dict[str, float] = defaultdict(float)
    for suite in suites:
        for seconds, name, _tests in slowest(suite):
            file = name.removeprefix("tests.").replace(".", "/")
            measured[file] = max(measured[file], seconds)
    rounded = {file: STEP * round(seconds / STEP) for file, seconds in measured.items()}
    every = {**before, **rounded}
    exist = (file for file in sorted(every) if (ROOT / f"{file}.py").exists())
    return {file: every[file] for file in exist if every[file] >= LEAST}


def save(paths: Iterable[str]) -> None:
    """Update the stored durations."""
    before = json.loads(DURATIONS.read_text(encoding="utf-8"))
    found = durations(before, map(suite_in, paths))
    DURATIONS.write_text(json.dumps(found, indent=4) + "\n", encoding="utf-8")


def main(path: str) -> int:
    """Print the lines."""
    suite = suite_in(path)
    print("counts", *counts(suite))
    for name in failed(suite):
        print("failed", name)
    for name in repeated(suite):
        print("repeated", name)
    for seconds, name, tests in slowest(suite)[:SHOWN]:
        print(f"slow {int(seconds) // 60:2}:{int(seconds) % 60:02} {name} ({tests})")
    return 0 if sum(counts(suite)) else 1


if __name__ == "__main__":
    if sys.argv[1] == "--save":
        save(sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1]))

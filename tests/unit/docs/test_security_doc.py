"""Every test named for a threat in SECURITY.md exists, and all of tests/attack is named."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

TESTS = ROOT / "tests"
TEXT = (ROOT / "SECURITY.md").read_text()
NAMED = sorted(set(re.findall(r"`((?:attack|slurm|unit|browser)/[\w/]+\.py(?:::\w+)?)`", TEXT)))
FINDINGS = [*("C1 H1 H2 H3 H4".split()), *(f"M{n}" for n in range(1, 8))]
FINDINGS += [*(f"L{n}" for n in range(1, 13)), *(f"P{n}" for n in range(1, 9))]


def test_tests_are_named() -> None:
    assert len(NAMED) > 30


def test_named_tests_exist() -> None:
    assert [named for named in NAMED if not exists(named)] == []


def exists(named: str) -> bool:
    """Whether "FILE" has a test, or "FILE::TEST" this one."""
    file, _, test = named.partition("::")
    pattern = rf"^(def {test or 'test_'}|Test\w+ = )"  # a state machine's, too
    path = TESTS / file
    return path.exists() and bool(re.search(pattern, path.read_text(), re.MULTILINE))


def test_a_missing_test_is_found() -> None:
    assert not exists("attack/test_none.py")
    assert not exists("attack/test_hub.py::test_none")


def test_every_attack_is_named() -> None:
    files = {f"attack/{file.name}" for file in (TESTS / "attack").glob("test_*.py")}
    assert files - {named.partition("::")[0] for named in NAMED} == set()


def test_every_finding_has_a_row() -> None:
    row = r"^\|[^|]*\([^|)]*\b{}\b[^|)]*\)[^|]*\|"
    missing = [id for id in FINDINGS if not re.search(row.format(id), TEXT, re.MULTILINE)]
    assert missing == []


def test_every_row_names_a_protection_and_a_test() -> None:
    table = TEXT.partition("## Threats")[2]
    rows = [
        line for line in table.splitlines() if line.startswith("| ") and "| tests |" not in line
    ]
    assert len(rows) > 30
    for row in rows:
        threat, protection, tests = (cell.strip() for cell in row.strip("| ").split(" | "))
        assert threat
        assert protection
        assert re.search(r"`\w+/[\w/]+\.py", tests), row

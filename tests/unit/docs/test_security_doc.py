"""Every test named for a threat in SECURITY.md exists, and all of tests/attack is named."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT

TESTS = ROOT / "tests"
TEXT = (ROOT / "SECURITY.md").read_text()
NAMED = sorted(set(re.findall(r"`((?:attack|slurm|unit|browser)/[\w/]+\.py(?:::\w+)?)`", TEXT)))
FINDINGS = [*("C1 H1 H2 H3 H4".split()), *(f"M{n}" for n in range(1, 8))]
FINDINGS += [*(f"L{n}" for n in range(1, 13)), *(f"P{n}" for n in range(1, 9))]


def test_tests_are_named() -> None:
    assert len(NAMED) > 30


@pytest.mark.parametrize("named", NAMED)
def test_a_named_test_exists(named: str) -> None:
    file, _, test = named.partition("::")
    source = (TESTS / file).read_text()
    pattern = rf"^(def {test or 'test_'}|Test\w+ = )"  # a state machine's, too
    assert re.search(pattern, source, re.MULTILINE), f"no {test} in {file}"


def test_every_attack_is_named() -> None:
    files = {f"attack/{file.name}" for file in (TESTS / "attack").glob("test_*.py")}
    assert files - {named.partition("::")[0] for named in NAMED} == set()


@pytest.mark.parametrize("finding", FINDINGS)
def test_every_finding_has_a_row(finding: str) -> None:
    assert re.search(rf"^\|[^|]*\([^|)]*\b{finding}\b[^|)]*\)[^|]*\|", TEXT, re.MULTILINE), finding


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

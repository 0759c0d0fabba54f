"""The distribution of tests to clusters: every name exists, and no test is left out."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tests.results import durations
from tests.sharing import ONCE, ROOT, SECONDS, deal


def test_names_of_once_exist() -> None:
    for name in ONCE:
        file, _, test = name.partition("::")
        text = (ROOT / "attack" / f"{file}.py").read_text()
        assert not test or re.search(rf"^def {test}\(", text, re.MULTILINE), name


def test_names_of_slow_files_exist() -> None:
    assert [file for file in SECONDS if not (ROOT / f"{file}.py").exists()] == []


def test_every_file_has_one_share_and_shares_are_balanced() -> None:
    files = [*SECONDS, *(f"slurm/test_{number}" for number in range(9))]
    loads = [0.0, 0.0]
    shares = deal(files, loads)
    assert set(shares) == set(files)
    assert abs(loads[0] - loads[1]) < 60
    assert shares == deal(reversed(files), [0.0, 0.0])


def test_durations_are_taken_from_results() -> None:
    text = """<testsuite><testcase classname="tests.slurm.test_ends" name="a" time="61.2"/>
    <testcase classname="tests.slurm.test_ends" name="b" time="20"/>
    <testcase classname="tests.slurm.test_gone" name="c" time="99"/>
    <testcase classname="tests.slurm.test_hub" name="d" time="12"/></testsuite>"""
    slower = '<testsuite><testcase classname="tests.slurm.test_ends" time="97"/></testsuite>'
    before = {"slurm/test_hub": 300, "slurm/test_crashes": 250, "browser/test_gone": 40}
    found = durations(before, [ElementTree.fromstring(text), ElementTree.fromstring(slower)])
    assert found == {"slurm/test_crashes": 250, "slurm/test_ends": 95}

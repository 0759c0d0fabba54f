"""Random cases: the same for the same seed, and well formed whatever the seed."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.oracle.cases import Case, generate
from tests.support.paths import ROOT

CASES = [generate(7, number) for number in range(300)]


def test_a_seed_always_makes_the_same_cases() -> None:
    program = "from tests.oracle.cases import generate; print([generate(7, n) for n in range(40)])"
    words = [sys.executable, "-c", program]
    texts = {
        subprocess.run(
            words,
            cwd=ROOT,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert texts == {f"{CASES[:40]}\n".encode()}
    assert generate(8, 0) != CASES[0]


def test_all_ways_interpreters_and_signals_come_up() -> None:
    assert {case.way for case in CASES} == {"file", "pipe", "name", "wrap"}
    assert len({case.script.partition("\n")[0] for case in CASES}) == 7
    assert {case.to for case in CASES if case.signals} == {"--batch", "--full"}
    assert any("--signal=B:USR1@50" in case.options for case in CASES)
    assert any("--array=1-2" in case.options for case in CASES)


def syntax_problem(case: Case) -> str:
    """What the interpreter of a script says of its syntax."""
    first, _, text = case.script.partition("\n")
    if "python" in first:
        compile(text, "script", "exec")  # raises SyntaxError
        return ""
    shell = "bash" if "bash" in first else "sh"
    words = [shell, "-n"]
    return subprocess.run(words, input=text, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("language", ["/sh", "bash", "python"])
def test_scripts_are_correct(language: str) -> None:
    scripts = [case for case in CASES if language in case.script.partition("\n")[0]]
    assert shutil.which("bash")
    assert scripts
    assert [problem for case in scripts[:60] if (problem := syntax_problem(case))] == []


def test_a_signal_is_sent_once_and_only_where_it_can_be_noted() -> None:
    for case in CASES:
        assert len(set(case.signals)) == len(case.signals)
        waits = "exists('over')" in case.script or "-e over" in case.script
        assert waits == (bool(case.signals) or "--signal=B:USR1@50" in case.options)
        if case.to == "--full" and case.signals:
            assert "os.fork()" in case.script


def test_the_command_that_repeats_a_case_names_it() -> None:
    assert CASES[12].command == "python -m tests.oracle 1 --seed 7 --first 12"

"""Signals that are passed on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.paths import ROOT

HANDLES = """
import os, signal, sys
from portal.batch.child import FORWARDED, forward
forward(lambda number: os._exit(number), FORWARDED)
"""
BROKEN_PIPE = """
reading, writing = os.pipe()
os.close(reading)
try:
    os.write(writing, b"answer")
except BrokenPipeError:
    sys.exit(0)
"""


def code_of(text: str) -> int:
    """The exit code of a program that passes signals on by exiting with their number."""
    return subprocess.run(
        [sys.executable, "-c", HANDLES + text],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=30,
    ).returncode


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGINT", "SIGTSTP", "SIGXCPU", "SIGRTMIN"])
def test_signals_are_passed_on(name: str) -> None:
    number = code_of(f"os.kill(os.getpid(), signal.{name})\nsignal.pause()\n")
    assert number == code_of(f"sys.exit(signal.{name}.value)")


def test_an_answer_to_a_program_that_is_gone_is_no_signal_for_the_script() -> None:
    assert code_of(BROKEN_PIPE) == 0

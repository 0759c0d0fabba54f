"""Open shells return the same as a separate process; here they are on this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.machine_shells import KILLED, Shells

HERE = ("env",)
ENVIRONMENT = os.environ | {"COMPOSE_PROJECT_NAME": "none"}


@pytest.fixture
def shells() -> Iterator[Shells]:
    found = Shells()
    yield found
    found.close()


def run(
    shells: Shells, script: str, stdin: str = "", seconds: float = 20
) -> subprocess.CompletedProcess[str]:
    done = shells.run(HERE, ENVIRONMENT, ["sh", "-c", script], stdin=stdin, seconds=seconds)
    assert done is not None
    return done


def test_input_and_output(shells: Shells) -> None:
    done = run(shells, "cat; echo wrong >&2; exit 3", "ä\n\0b")
    assert (done.returncode, done.stdout, done.stderr) == (3, "ä\n\0b", "wrong\n")
    assert len(run(shells, "head -c 3000000 /dev/zero").stdout) == 3_000_000
    assert run(shells, "kill -9 $$").returncode == KILLED


def test_missing_programs_and_machines(shells: Shells) -> None:
    done = shells.run(HERE, ENVIRONMENT, ["/nothing/there"], stdin="", seconds=20)
    assert done is not None
    assert done.returncode == 127
    nowhere = ("/nothing/there/env",)
    with pytest.raises(FileNotFoundError):
        shells.run(nowhere, ENVIRONMENT, ["true"], stdin="", seconds=20)
    assert shells.run(("false",), ENVIRONMENT, ["true"], stdin="", seconds=20) is None


def test_background_processes_delay_nobody(shells: Shells) -> None:
    assert run(shells, "sleep 30 & echo $!", seconds=10).stdout.strip().isdigit()


def test_a_command_times_out_and_the_next_one_works(shells: Shells) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run(shells, "sleep 30", seconds=0.5)
    assert run(shells, "echo here").stdout == "here\n"


def test_a_machine_that_goes_down_in_between(shells: Shells) -> None:
    assert run(shells, "kill -9 $PPID; sleep 5").returncode == KILLED
    first = run(shells, "echo $PPID").stdout
    os.kill(int(first), 9)
    assert run(shells, "echo here").stdout == "here\n"


def test_parallel_commands(shells: Shells) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: run(shells, f"sleep 0.1; echo {n}").stdout, range(8)))
    assert found == [f"{n}\n" for n in range(8)]

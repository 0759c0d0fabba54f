"""The trace: what the shim did, printed when a program ends, however it ends."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.gres.conftest import MIB, UUID, Shim

CAP = 64 * MIB


@pytest.fixture
def session(standin: object, shim: Callable[..., Shim]) -> Shim:
    made = shim()
    made.grant((UUID.format(0), CAP, 100))
    return made


def run(
    program: Path, session: Shim, commands: str, level: str | None
) -> subprocess.CompletedProcess[str]:
    environment = {} if level is None else {"SLIPWAY_GPU_TRACE": level}
    return subprocess.run(
        [program, session.cuda],
        input=commands,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


TOO_MUCH = f"begin\ntake plain {CAP + 1}\ntake managed {CAP + 2}\ntake plain {CAP + 1}\n"


@pytest.mark.parametrize("level", [None, "", "0", "3", "yes"])
def test_without_the_variable_nothing_is_printed(
    level: str | None, client_program: Path, session: Shim
) -> None:
    assert run(client_program, session, TOO_MUCH, level).stderr == ""


def test_counts_are_printed_at_exit(client_program: Path, session: Shim) -> None:
    commands = f"{TOO_MUCH}take plain {3 * MIB}\ngive 0\n"
    lines = run(client_program, session, commands, "1").stderr.splitlines()
    assert all(line.startswith("slipway trace: libcuda.so.1 of process ") for line in lines)
    texts = [line.split(": ", 2)[2] for line in lines]
    charged = re.search(r"charges 1 \((\d+) bytes, of which (\d+) released\)", texts[0])
    assert charged and int(charged[1]) == int(charged[2]) >= 3 * MIB
    assert texts[1:] == ["refused cuMemAlloc_v2, 2 times", "refused cuMemAllocManaged, 1 time"]


def test_level_2_prints_each_refusal_as_it_happens(client_program: Path, session: Shim) -> None:
    commands = f"begin\ntake plain {4 * MIB}\ntake plain {CAP}\nfork\n"
    lines = run(client_program, session, commands, "2").stderr.splitlines()
    assert re.search(
        rf"refused cuMemAlloc_v2, asked for {CAP} bytes, used {4 * MIB} of {CAP}$", lines[0]
    )


@pytest.mark.parametrize("end", ["_exit", "kill", "exit"])
def test_it_is_printed_once_however_the_program_ends(
    end: str, client_program: Path, session: Shim
) -> None:
    lines = run(client_program, session, f"{TOO_MUCH}end {end}\n", "1").stderr.splitlines()
    assert [line.split(": ", 2)[2] for line in lines[1:]] == [
        "refused cuMemAlloc_v2, 2 times",
        "refused cuMemAllocManaged, 1 time",
    ]


def test_a_forked_child_counts_for_itself(client_program: Path, session: Shim) -> None:
    """Both read what comes after `fork`, since the parent has buffered it."""
    commands = f"{TOO_MUCH}fork\nbegin\ntake managed {CAP + 1}\nend _exit\n"
    text = run(client_program, session, commands, "1").stderr
    by_process: dict[str, list[str]] = {}
    for line in text.splitlines():
        process, said = line.split(": ", 2)[1:]
        by_process.setdefault(process, []).append(said)
    refused = sorted(said[1:] for said in by_process.values())
    assert refused == [
        ["refused cuMemAllocManaged, 1 time"],
        ["refused cuMemAlloc_v2, 2 times", "refused cuMemAllocManaged, 2 times"],
    ]


def test_the_program_does_not_see_the_printer(client_program: Path, session: Shim) -> None:
    done = run(client_program, session, "begin\nchildren\n", "1")
    assert done.stdout.splitlines() == ["0", "-1"]  # wait() has nothing to wait for

"""The total held by all processes of a session: races, forks, ends of every kind."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.unit.gres.clients import OUT_OF_MEMORY, Client
from tests.unit.gres.conftest import BLOCK, CAP, MIB, Shim, Standin


def test_64_racing_processes_fill_the_slice_and_never_more(
    program: Path, session: Shim, standin: Standin
) -> None:
    piece = 3 * MIB // 2
    with ExitStack() as stack:
        racers = [
            stack.enter_context(Client(program, session.cuda, begin=False)) for _ in range(64)
        ]
        for racer in racers:
            racer.send("begin")
            racer.send("race", piece)
        taken = [(racer.answer(), int(racer.answer()[0]))[1] for racer in racers]
        assert sum(taken) * BLOCK == CAP  # two thirds of a block are not left for others
        assert racers[0].unused == 0
        for racer in racers:
            racer.kill()
        with Client(program, session.cuda) as after:
            assert after.take("plain", CAP) == 0


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("kind", ["plain", "async", "physical", "graph", "array"])
def test_a_process_killed_during_an_allocation_holds_nothing(
    kind: str, client: Client, program: Path, session: Shim
) -> None:
    with Client(program, session.cuda) as other:
        client.ask("pause", 60_000)
        client.send("take", kind, 1024 * MIB)
        wait_for(lambda: other.unused == CAP - 1024 * MIB)
        assert other.take("plain", CAP) == OUT_OF_MEMORY  # it may still succeed
        client.kill()
        assert other.unused == CAP
        assert other.take("plain", CAP) == 0


def test_kills_at_any_moment_leave_nothing_behind(
    client: Client, program: Path, session: Shim, standin: Standin
) -> None:
    empty = standin.used()
    for round_ in range(40):
        with Client(program, session.cuda) as churning:
            churning.send("churn", 6 * MIB)
            time.sleep(0.001 + round_ * 0.00017)
            assert client.unused >= CAP - 3 * 6 * MIB
        assert (client.unused, standin.used()) == (CAP, empty)
    assert client.take("plain", CAP) == 0


def test_a_stopped_process_keeps_its_memory(client: Client, program: Path, session: Shim) -> None:
    client.take("plain", 512 * MIB)
    client.process.send_signal(signal.SIGSTOP)
    with Client(program, session.cuda) as other:
        assert other.take("plain", CAP) == OUT_OF_MEMORY
        assert other.unused == CAP - 512 * MIB


def test_a_child_is_counted_separately(client: Client, program: Path, session: Shim) -> None:
    client.take("plain", 512 * MIB)
    with Client(program, session.cuda) as other:
        assert client.ask("fork") == ["child"]
        assert other.unused == CAP - 512 * MIB
        assert client.ask("begin") == ["0"]
        assert client.take("plain", CAP - 512 * MIB + 1) == OUT_OF_MEMORY
        assert client.take("plain", 256 * MIB) == 0
        assert other.unused == CAP - 768 * MIB
        assert client.ask("end") == ["parent"]
        assert other.unused == CAP - 512 * MIB
        assert client.give(0) == 0
        assert other.unused == CAP


def test_a_surviving_child_keeps_no_memory_of_its_parent(
    client: Client, program: Path, session: Shim
) -> None:
    client.take("plain", 512 * MIB)
    assert client.ask("fork") == ["child"]
    with Client(program, session.cuda) as other:
        assert other.unused == CAP - 512 * MIB
        client.kill()  # the parent alone
        assert other.unused == CAP
        assert client.ask("begin") == ["0"]
        assert client.take("plain", 256 * MIB) == 0
        assert other.unused == CAP - 256 * MIB
        client.send("end")


def test_a_program_that_closes_all_descriptors_stays_counted(
    client: Client, program: Path, session: Shim
) -> None:
    client.take("plain", 512 * MIB)
    client.ask("closefrom")
    with Client(program, session.cuda) as other:
        assert other.unused == CAP - 512 * MIB
        assert other.take("plain", CAP) == OUT_OF_MEMORY


def test_a_process_of_another_pid_namespace_is_counted_and_cleaned_up(
    client: Client, program: Path, session: Shim
) -> None:
    apart = "unshare --user --map-current-user --pid --fork --kill-child".split()
    with Client(program, session.cuda, *apart) as inner:
        assert inner.take("plain", 512 * MIB) == 0
        assert client.unused == CAP - 512 * MIB
        assert client.take("plain", CAP) == OUT_OF_MEMORY
        inner.kill()
        wait_for(lambda: client.unused == CAP)
        assert client.take("plain", CAP) == 0

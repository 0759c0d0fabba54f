"""The driver frees the memory of a killed process later than the ledger does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.gres.clients import OUT_OF_MEMORY, Client
from tests.unit.gres.conftest import MIB, UUID, Shim, Standin

CAP = 7168 * MIB
"""So much of the GPU's 8 GiB that a second slice of it does not fit."""
KINDS = ["plain", "array", "physical", "async"]


@pytest.fixture
def session(standin: Standin, shim: Callable[..., Shim]) -> Shim:
    made = shim()
    made.grant((UUID.format(0), CAP, 100))
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_process_gets_the_memory_as_soon_as_it_is_free(
    kind: str, client_program: Path, session: Shim, standin: Standin
) -> None:
    with Client(client_program, session.cuda, environment={"STANDIN_LINGER_MS": "300"}) as killed:
        assert killed.take("plain", CAP) == 0
    with Client(client_program, session.cuda) as after:
        assert after.unused <= CAP
        started = time.monotonic()
        assert after.take(kind, CAP - 64 * MIB) == 0
        assert time.monotonic() - started < 5


def test_memory_that_does_not_come_back_is_waited_for_a_second(
    client_program: Path, session: Shim, standin: Standin
) -> None:
    with Client(client_program, session.cuda, environment={"STANDIN_LINGER_MS": "60000"}) as killed:
        assert killed.take("plain", CAP) == 0
    with Client(client_program, session.cuda) as after:
        started = time.monotonic()
        assert after.take("plain", CAP) == OUT_OF_MEMORY
        assert 0.9 < time.monotonic() - started < 10


def test_without_a_death_nothing_is_waited_for(
    client_program: Path, session: Shim, standin: Standin
) -> None:
    """A neighbour, or contexts, may fill the GPU: that is an error at once."""
    with Client(client_program, standin.cuda) as neighbour:
        assert neighbour.take("plain", 4096 * MIB) == 0
        with Client(client_program, session.cuda) as client:
            started = time.monotonic()
            assert client.take("plain", CAP) == OUT_OF_MEMORY
            assert time.monotonic() - started < 0.5


def test_a_death_without_memory_does_not_count(
    client_program: Path, session: Shim, standin: Standin
) -> None:
    with Client(client_program, standin.cuda) as neighbour:
        assert neighbour.take("plain", 4096 * MIB) == 0
        with Client(client_program, session.cuda) as killed:
            assert killed.take("plain", MIB) == 0
            assert killed.give() == 0
        with Client(client_program, session.cuda) as client:
            started = time.monotonic()
            assert client.take("plain", CAP) == OUT_OF_MEMORY
            assert time.monotonic() - started < 0.5

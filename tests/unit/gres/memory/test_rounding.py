"""The slice is charged what the driver takes, which is more than a program asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.gres.clients import OUT_OF_MEMORY, Client
from tests.unit.gres.conftest import MIB, UUID, Shim, Standin
from tests.unit.gres.memory.rounding import table

CAP = 512 * MIB
BLOCK = 2 * MIB
MANY = 64


@pytest.fixture
def session(standin: Standin, shim: Callable[..., Shim]) -> Shim:
    made = shim()
    made.grant((UUID.format(0), CAP, 100))
    return made


@pytest.fixture
def client(client_program: Path, session: Shim) -> Iterator[Client]:
    with Client(client_program, session.cuda) as made:
        yield made


def test_the_table_has_the_measured_sizes() -> None:
    assert {786432, 1048577, 2097153} <= table().keys()


@pytest.mark.parametrize("asked", table())
def test_the_stand_in_takes_what_real_drivers_were_measured_to_take(
    asked: int, client_program: Path, standin: Standin
) -> None:
    with Client(client_program, standin.cuda) as bare:
        before, count = standin.used(), BLOCK * MANY // table()[asked]
        assert bare.ask("pieces", asked, asked, count) == [str(count)]
        assert standin.used() - before == count * table()[asked]


@pytest.mark.parametrize("asked", [1, 600, *table(), 40_000, 600_000, 1_048_576, 3_000_000])
def test_exactly_that_is_charged(asked: int, client: Client, standin: Standin) -> None:
    empty, count = standin.used(), 300
    taken = int(client.ask("pieces", asked, asked, count)[0])
    assert CAP - client.unused == standin.used() - empty > 0
    assert taken == count or client.unused < 2 * BLOCK
    assert client.ask("thin", 0) == ["0"]
    assert (client.unused, standin.used()) == (CAP, empty)


def test_buffers_of_1_to_3_mib_end_at_the_slice(
    client: Client, standin: Standin, session: Shim, client_program: Path
) -> None:
    """They took up to twice what was charged, of the neighbours' memory."""
    empty = standin.used()
    taken = int(client.ask("pieces", MIB, 3 * MIB, 4000)[0])
    assert CAP // (4 * MIB) <= taken < 4000
    assert empty + CAP - BLOCK <= standin.used() <= empty + CAP
    with Client(client_program, session.cuda) as other:
        assert other.take("plain", 3 * MIB) == OUT_OF_MEMORY
    assert client.ask("thin", 0) == ["0"]
    assert (client.unused, standin.used()) == (CAP, empty)


def test_thousands_of_small_buffers_are_not_charged_a_block_each(
    client: Client, standin: Standin
) -> None:
    assert client.ask("pieces", 4096, 4096, 16384) == ["16384"]
    assert CAP - client.unused == 16384 * 4096


def test_a_block_is_charged_until_its_last_piece_is_freed(client: Client, standin: Standin) -> None:
    """What cannot be used by others is not free."""
    empty = standin.used()
    client.ask("pieces", 4096, 4096, 16384)
    assert client.ask("thin", 512) == ["0"]  # one is left in each block
    assert CAP - client.unused == standin.used() - empty == 16384 * 4096
    assert client.ask("reset") == ["0"]
    assert client.ask("begin") == ["0"]
    assert client.unused == CAP


@pytest.mark.parametrize("kind", ["plain", "old", "pitch", "managed"])
def test_a_small_piece_takes_a_block_and_gives_it_back(
    kind: str, client: Client, standin: Standin
) -> None:
    empty = standin.used()
    assert client.take(kind, 4096) == 0
    assert CAP - client.unused == standin.used() - empty == BLOCK
    assert client.give() == 0
    assert (client.unused, standin.used()) == (CAP, empty)


@pytest.mark.parametrize("kind", ["array", "mipmap"])
def test_arrays_larger_than_a_mib_have_blocks_of_their_own(
    kind: str, client: Client, standin: Standin
) -> None:
    empty = standin.used()
    assert client.take(kind, 3 * MIB) == 0
    assert CAP - client.unused == standin.used() - empty == 4 * MIB


def test_threads_share_blocks(client: Client, standin: Standin) -> None:
    empty = standin.used()
    for size in (512, 4096, 700_000):
        assert client.ask("crowd", size) == ["0"]
        assert (client.unused, standin.used()) == (CAP, empty)


def test_nothing_asked_for_is_the_drivers_own_error(client: Client) -> None:
    assert client.take("plain", CAP) == 0
    assert client.take("plain", 0) == 1  # CUDA_ERROR_INVALID_VALUE, also in a full slice

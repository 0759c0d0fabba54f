"""While one thread waits in the driver, others are not held up, and nothing goes uncounted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.gres.clients import OUT_OF_MEMORY, Client
from tests.unit.gres.conftest import MIB, UUID, Shim, Standin, driver_before

CAP = 256 * MIB
PART = 32 * MIB
WAITING = {
    "plain": "cuMemAlloc_v2",
    "async": "cuMemAllocAsync",
    "pooled": "cuMemAllocFromPoolAsync",
    "physical": "cuMemCreate",
    "graph": "cuGraphLaunch",
    "graph_node": "cuGraphUpload",
}
"""Kinds of allocation (cuda_client.c), and the function in which the driver waits."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the files by which the driver's functions are stopped."""
    return tmp_path_factory.mktemp("waiting")


@pytest.fixture(scope="module")
def waiting_driver(folder: Path, standin_built: Standin) -> Path:
    source = Path(__file__).with_name("blocking_driver.c")
    return driver_before(standin_built, folder / "driver", source, f'-DFOLDER="{folder}"')


@pytest.fixture
def client(
    shim: object, standin: Standin, waiting_driver: Path, client_program: Path
) -> Iterator[Client]:
    assert callable(shim)
    session = shim("waiting")
    assert isinstance(session, Shim)
    session.use_driver(waiting_driver)
    session.grant((UUID.format(0), CAP, 100))
    with Client(client_program, session.cuda) as made:
        yield made


class Stop:
    """Stops the driver's function in threads other than the first, until it is left."""

    def __init__(self, folder: Path, name: str) -> None:
        self.file = folder / name
        self.waits = folder / f"{name}.waits"
        self.latest = threading.Timer(20, self.file.unlink)  # seconds; __exit__ then fails

    def __enter__(self) -> Stop:
        self.waits.unlink(missing_ok=True)
        self.file.touch()
        self.latest.start()
        return self

    def wait(self) -> None:
        deadline = time.monotonic() + 10
        while not self.waits.exists():
            assert time.monotonic() < deadline, f"nobody called {self.file.name}"
            time.sleep(0.005)

    def __exit__(self, *_: object) -> None:
        self.latest.cancel()
        self.file.unlink()


@pytest.mark.parametrize("when", ["", "-after"])
@pytest.mark.parametrize("kind", WAITING)
def test_other_threads_allocate_while_one_waits_in_the_driver(
    kind: str, when: str, client: Client, folder: Path, standin: Standin
) -> None:
    """Before and after the driver has taken the memory: it is charged all the time, and once."""
    empty = standin.used()
    with Stop(folder, WAITING[kind] + when) as stop:
        assert client.ask("start", kind, PART) == ["0"]
        stop.wait()
        assert client.unused == CAP - PART
        for other in WAITING:
            before = client.unused
            began = time.monotonic()
            taken = client.ask("take", other, PART)
            assert (other, taken[0]) == (other, "0")
            assert time.monotonic() - began < 1  # seconds
            assert client.unused <= before - PART or other.startswith("graph")
            assert CAP - client.unused >= standin.used() - empty  # never less than was taken
            assert client.give(int(taken[1])) == 0
        assert client.take("plain", CAP - PART + 1) == OUT_OF_MEMORY
    assert client.ask("join") == ["0"]
    assert client.give(0) == 0
    assert client.take("plain", CAP) == 0


def test_a_trim_leaves_what_a_waiting_call_is_about_to_take(client: Client, folder: Path) -> None:
    """The pool has it unused already; another allocator makes the shim trim all pools."""
    first = client.ask("take", "async", PART)
    assert client.give(int(first[1])) == 0
    with Stop(folder, "cuMemAllocAsync") as stop:
        client.ask("start", "async", PART)
        stop.wait()
        assert client.take("plain", CAP - PART + 1) == OUT_OF_MEMORY
        assert client.unused == CAP - PART
        assert client.take("plain", CAP - PART) == 0
    assert client.ask("join") == ["0"]
    assert client.unused == 0


@pytest.mark.parametrize("kind", ["plain", "async", "physical", "graph", "captured"])
def test_threads_that_fill_the_slice_together_all_get_their_part(kind: str, client: Client) -> None:
    for _ in range(20):
        assert client.ask("together", kind, CAP // 8) == ["8"]
    assert client.take("plain", CAP) == 0

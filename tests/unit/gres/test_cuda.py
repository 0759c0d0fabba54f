"""The shim for libcuda against the stand-in: the cap by every allocator, reports, look-ups."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.gres.clients import OUT_OF_MEMORY, Client
from tests.unit.gres.conftest import BLOCK, CAP, GPU, MIB, UUID, Shim, Standin

STEPS = {
    "plain": 1,
    "old": 1,
    "managed": 1,
    "pitch": 512,
    "padded": 512,
    "old_pitch": 512,
    "array": 1024,
    "old_array": 1024,
    "array3d": 1024,
    "old_array3d": 1024,
    "mipmap": 3,
    "async": 1,
    "async_ptsz": 1,
    "pooled": 1,
    "pooled_ptsz": 1,
    "physical": 2 * MIB,
    "graph": 1,
    "graph_node": 1,
    "nested": 1,
    "captured": 1,
}
"""Each kind of allocation (cuda_client.c), and its granularity in bytes."""


@pytest.mark.parametrize("kind", STEPS)
def test_every_allocator_ends_at_the_slice(
    kind: str, client: Client, standin: Standin, session: Shim, program: Path
) -> None:
    step, empty = STEPS[kind], standin.used()
    assert client.take(kind, CAP + step) == OUT_OF_MEMORY
    assert client.unused == CAP
    assert client.take(kind, CAP) == 0
    assert (client.unused, standin.used()) == (0, empty + CAP)
    assert client.take("plain", 1) == OUT_OF_MEMORY
    assert client.give() == 0
    assert (client.unused, standin.used()) == (CAP, empty)
    assert client.take("plain", 1) == 0
    with Client(program, session.cuda) as other:  # all processes of the session together
        assert other.take(kind, CAP - BLOCK + step) == OUT_OF_MEMORY
        assert other.take(kind, CAP - BLOCK) == 0
        assert other.unused == 0


def test_nothing_leaks_in_a_thousand_rounds(client: Client, standin: Standin) -> None:
    empty = standin.used()
    for kind in STEPS:
        assert client.ask("cycle", kind, 6 * MIB) == ["1000"], kind
        assert (kind, client.unused, standin.used()) == (kind, CAP, empty)


def test_concurrent_threads_and_forks_neither_leak_nor_deadlock(
    client: Client, standin: Standin
) -> None:
    empty = standin.used()
    assert client.ask("threads", 6 * MIB) == ["0"]
    assert (client.unused, standin.used()) == (CAP, empty)


def test_memory_of_the_host_is_not_charged(client: Client) -> None:
    assert client.take("of_host", 4 * MIB) == 0
    assert client.take("host", 4 * MIB) == 0
    assert client.take("sparse", 4 * MIB) == 0  # an array that has no memory yet
    assert client.unused == CAP


def test_physical_memory_is_charged_while_it_has_a_handle_or_a_mapping(client: Client) -> None:
    taken = CAP - 4 * MIB
    assert client.ask("map", 4 * MIB) == [str(taken), str(taken), str(CAP)]
    assert client.ask("tile", 4 * MIB) == [str(taken), str(CAP)]


def test_a_pool_is_trimmed_before_another_allocator_fails(
    client: Client,
) -> None:
    assert client.take("captured", 1024 * MIB) == 0
    client.ask("give", 0)
    assert client.take("pooled", 1024 * MIB) == 0
    assert client.take("plain", 1024 * MIB) == OUT_OF_MEMORY
    client.ask("give", 0)
    assert client.take("plain", CAP) == 0


def test_destroying_a_context_frees_its_memory(client: Client, standin: Standin) -> None:
    for kind in ("plain", "array", "mipmap", "managed", "old"):
        assert client.take(kind, 6 * MIB) == 0
    assert client.ask("reset") == ["0"]
    assert client.ask("begin") == ["0"]
    assert client.unused == CAP


def test_memory_of_another_process_is_not_charged_twice(
    client: Client, program: Path, session: Shim
) -> None:
    client.take("plain", 512 * MIB)
    handle = client.ask("export", 0)[1]
    with Client(program, session.cuda) as other:
        left = str(CAP - 512 * MIB)
        assert other.ask("import", handle) == ["0", left, "0", left]


def test_the_slice_is_reported_as_the_whole_gpu(client: Client) -> None:
    client.take("plain", 536 * MIB)
    left, total = 1000 * MIB, CAP
    assert client.ask("report") == [str(n) for n in (left, total, total, left, total, total)]


def test_each_gpu_has_its_own_part_whatever_its_number(
    program: Path, standin: Standin, session: Shim
) -> None:
    standin.reset(gpus=2)
    session.grant((UUID.format(1), CAP // 2, 100), (GPU, CAP, 100))
    with Client(program, session.cuda) as client:
        assert client.take("async", CAP) == 0
        assert client.ask("begin", 1) == ["0"]
        assert client.unused == CAP // 2
        assert client.take("async", CAP // 2) == 0
        assert client.take("plain", 1) == OUT_OF_MEMORY
        assert client.give(0) == 0
        assert client.unused == 0
        assert client.ask("begin", 0) == ["0"]
        assert client.take("physical", CAP) == 0


def test_a_whole_gpu_is_unlimited_but_counted(
    program: Path, standin: Standin, session: Shim
) -> None:
    session.grant((GPU, 0, 100))
    with Client(program, session.cuda) as client:
        before = client.unused
        assert int(client.ask("report")[1]) == 8192 * MIB
        assert client.take("plain", before) == 0
        assert client.take("plain", 1) == OUT_OF_MEMORY
        assert client.give(0) == 0


def test_a_neighbour_keeps_the_rest_of_the_gpu(
    program: Path, session: Shim, standin: Standin
) -> None:
    with Client(program, session.cuda) as greedy, Client(program, standin.cuda) as neighbour:
        rest = neighbour.unused - CAP
        for _ in range(2):
            greedy.ask("race", 16 * MIB)
        assert neighbour.take("async", rest) == 0


def test_a_gpu_outside_the_slice_has_no_memory(program: Path, session: Shim) -> None:
    session.grant((UUID.format(7), CAP, 100))
    with Client(program, session.cuda) as client:
        assert client.take("plain", 1) == OUT_OF_MEMORY
        assert client.take("async", 1) == OUT_OF_MEMORY


@pytest.mark.parametrize("text", ["", "version=2\n", "version=1\ngpu=GPU-1\nmemory=-1\n"])
def test_without_a_readable_slice_the_process_ends(text: str, program: Path, session: Shim) -> None:
    (session.directory / "slice").write_text(text)
    done = subprocess.run(
        [program, session.cuda],
        input="begin\ntake plain 1\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "start the session again" in done.stderr


def test_without_counters_there_is_no_memory(program: Path, session: Shim) -> None:
    (session.directory / "counters").unlink()
    with Client(program, session.cuda) as client:
        assert client.take("plain", 1) == OUT_OF_MEMORY

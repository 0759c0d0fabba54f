"""Common frameworks in a slice of a real GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.gpu.session import Session

GIB = 1 << 30
NEED = Callable[[str], None]
ALLOCATORS = {
    "PyTorch's own": "",
    "expandable segments": "expandable_segments:True",
    "cudaMallocAsync": "backend:cudaMallocAsync",
}


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_pytorch_fills_its_slice_and_no_more(
    session: Session, cap: int, need: NEED, figures: dict[str, str], allocator: str
) -> None:
    need("torch")
    before = session.gpu.used()
    settings = {"PYTORCH_CUDA_ALLOC_CONF": ALLOCATORS[allocator]}
    with session.start("pytorch", "fill", **settings) as program:
        seen = program.next_message()
        outside = session.gpu.used() - before - cap
        program.end()
    assert seen["error"] == "OutOfMemoryError"
    assert seen["total"] == cap
    assert cap - GIB <= seen["held"] <= cap
    assert outside < GIB
    figures[f"PyTorch, {allocator}: filled"] = f"{seen['held'] / cap:.3f} of the slice"


def test_two_processes_of_pytorch_share_one_slice(session: Session, cap: int, need: NEED) -> None:
    need("torch")
    with session.start("pytorch", "fill") as first:
        one = first.next_message()["held"]
        with session.start("driver", "hold", 0.1) as second:
            assert not second.next_message()["got"]
        first.end()
    assert one <= cap


def test_graphs_of_pytorch(session: Session, need: NEED) -> None:
    need("torch")
    assert session.run("pytorch", "graphs") == {"right": True, "refused": True}


def test_a_thousand_cycles_of_pytorch_leave_nothing(session: Session, need: NEED) -> None:
    need("torch")
    seen = session.run("pytorch", "cycles")
    assert seen["before"] == seen["after"]


def test_a_crash_does_not_affect_the_neighbour(
    session: Session, neighbour: Session, need: NEED, figures: dict[str, str]
) -> None:
    need("torch")
    with neighbour.start("pytorch", "survive") as other:
        assert other.next_message()["ready"]
        assert session.run("pytorch", "crash")["crashed"]
        assert other.end()["right"]
    figures["A neighbour's crash"] = "survived"


@pytest.mark.parametrize("pool", ["own", "async"])
def test_cupy_fills_its_slice_and_no_more(
    session: Session, cap: int, need: NEED, pool: str
) -> None:
    need("cupy")
    seen = session.run("with_cupy", pool)
    assert seen["right"]
    assert seen["total"] == cap
    assert cap - GIB <= seen["held"] <= cap


def test_jax_sees_its_slice(session: Session, cap: int, need: NEED) -> None:
    need("jax")
    seen = session.run("with_jax")
    assert seen["right"]
    assert seen["limit"] == pytest.approx(0.75 * cap, rel=0.05)
    assert seen["held"] <= cap
    assert seen["error"] == "RESOURCE_EXHAUSTED"


def test_triton_finds_the_shim(session: Session, cap: int, need: NEED) -> None:
    need("triton")
    need("torch")
    seen = session.run("with_triton")
    assert seen["right"]
    assert seen["total"] == cap
    assert str(session.shim / "libcuda.so.1") in seen["libraries"]

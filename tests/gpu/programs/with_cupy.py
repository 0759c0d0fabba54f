"""CuPy in a slice:  with_cupy.py CASE …  prints its findings as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import cupy
from saying import say

STEP = 64 << 20


def fill(pool: str, most: str) -> None:
    """With CuPy's own pool, or with the driver's (async)."""
    if pool == "async":
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    total = cupy.cuda.runtime.memGetInfo()[1]
    right = int(cupy.arange(1000).sum()) == 499_500
    held: list[Any] = []
    error = ""
    while not error and len(held) * STEP < int(most):
        try:
            held.append(cupy.zeros(STEP, dtype=cupy.uint8))
        except cupy.cuda.memory.OutOfMemoryError as refused:
            error = type(refused).__name__
        except cupy.cuda.runtime.CUDARuntimeError as refused:
            error = str(refused)
    say(held=len(held) * STEP, total=total, error=error, result=right)


def streams() -> None:
    """Work on four streams, and an order between two of them by an event."""
    several = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    found = []
    for number, stream in enumerate(several):
        with stream:
            found.append((cupy.arange(100_000, dtype=cupy.int64) * number).sum())
    event = several[0].record()
    several[1].wait_event(event)
    with several[1]:
        last = found[0] + 7
    cupy.cuda.Device().synchronize()
    say(result=[*map(int, found), int(last)])


CASES: dict[str, Callable[..., None]] = {"fill": fill, "streams": streams}

if __name__ == "__main__":
    CASES[sys.argv[1]](*sys.argv[2:])

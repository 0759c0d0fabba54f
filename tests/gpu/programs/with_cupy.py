"""CuPy in a slice: fills it, and prints its findings as JSON."""

from __future__ import annotations

import sys

import cupy
from saying import say

STEP = 64 << 20


def main(pool: str) -> None:
    """With CuPy's own pool, or with the driver's (async)."""
    if pool == "async":
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    total = cupy.cuda.runtime.memGetInfo()[1]
    right = int(cupy.arange(1000).sum()) == 499_500
    held, error = [], ""
    while not error:
        try:
            held.append(cupy.zeros(STEP, dtype=cupy.uint8))
        except cupy.cuda.memory.OutOfMemoryError as refused:
            error = type(refused).__name__
        except cupy.cuda.runtime.CUDARuntimeError as refused:
            error = str(refused)
    say(held=len(held) * STEP, total=total, error=error, right=right)


main(*sys.argv[1:])

"""Allocating by CUDA's driver API:  memory.py CASE …  prints its findings as JSON."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

from driver import MIB, OUT_OF_MEMORY, STEP, Cuda
from saying import pause, say

HEAP_LIMIT = 2


def fill(cuda: Cuda, kind: str, most: str) -> None:
    """Allocate in pieces until it is refused; then half of the total in one piece must fail.

    Never more than `most` bytes: where nothing refuses (managed memory without the shim), going on
    would hang the GPU.
    """
    held, size = 0, STEP
    while held + size <= int(most) and size >= 2 * MIB:
        if cuda.allocate(kind, size) is None:
            size //= 2
        else:
            held += size
    refused = held < int(most) - STEP and cuda.allocate(kind, cuda.memory()["total"] // 2) is None
    say(held=held, refused=refused, **cuda.memory())
    pause()
    say(held=held, refused=refused)


def cycles(cuda: Cuda, kind: str, number: str) -> None:
    """Allocate most of the slice again and again; free memory before and after."""
    size = int(cuda.memory()["total"] * 0.8)
    before = cuda.memory()["free"]
    for _ in range(int(number)):
        address = cuda.allocate(kind, size)
        if address is None:
            sys.exit("80 % of the slice could not be had")
        cuda.free(address)
    cuda.wait()
    say(before=before, after=cuda.memory()["free"])


def hold(cuda: Cuda, share: str) -> None:
    """Hold part of the slice until the suite continues."""
    address = cuda.allocate("plain", int(cuda.memory()["total"] * float(share)))
    say(got=address is not None, pid=os.getpid())
    pause()
    say(got=address is not None)


def keep(cuda: Cuda, size: str) -> None:
    """Hold so many bytes, in pieces, until the suite continues."""
    held = 0
    while held < int(size) and cuda.allocate("plain", STEP) is not None:
        held += STEP
    say(held=held, pid=os.getpid())
    pause()
    say(held=held)


def pieces(cuda: Cuda, size: str, total: str) -> None:
    """Many allocations of one size: what was asked for, and what the slice was charged."""
    before = cuda.memory()["free"]
    count = 0
    while count * int(size) < int(total) and cuda.allocate("plain", int(size)) is not None:
        count += 1
    say(count=count, charged=before - cuda.memory()["free"])
    pause()
    say(count=count)


def context(cuda: Cuda) -> None:
    """Nothing but a context."""
    say(pid=os.getpid(), **cuda.memory())
    pause()
    say(pid=os.getpid())


def heap(cuda: Cuda, size: str) -> None:
    """The heap of the context (for malloc in kernels), which the driver makes by itself."""
    before = cuda.memory()["free"]
    limit = cuda.ask("cuCtxSetLimit", HEAP_LIMIT, ctypes.c_size_t(int(size)))
    function = cuda.function("heap.ptx", b"heap")
    number = ctypes.c_uint(0)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(number))
    launch = cuda.ask("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
    end = cuda.ask("cuCtxSynchronize")
    say(pid=os.getpid(), answers=[limit, launch, end], charged=before - cuda.memory()["free"])
    pause()
    say(answers=[limit, launch, end])


def write(cuda: Cuda, address: int, size: int) -> bool:
    """Write all of it on the GPU; whether this driver can."""
    words = ctypes.c_uint64(address), ctypes.c_ubyte(1), ctypes.c_size_t(size)
    written: bool = cuda.attempt("cuMemsetD8_v2", *words)
    cuda.wait()
    return written


def managed(cuda: Cuda, size: str) -> None:
    """Managed memory, moved to the GPU by writing it there."""
    before = cuda.memory()["free"]
    address = cuda.allocate("managed", int(size))
    if address is None:
        sys.exit(f"{size} bytes of managed memory could not be had")
    written = write(cuda, address, int(size))
    more = cuda.allocate("managed", cuda.memory()["total"])
    charged = before - cuda.memory()["free"]
    say(pid=os.getpid(), charged=charged, written=written, refused=more is None)
    pause()
    say(charged=charged)


def managed_only(cuda: Cuda, size: str) -> None:
    """Managed memory on the GPU, as much as was asked for, and nothing else."""
    address = cuda.allocate("managed", int(size))
    if address is not None:
        write(cuda, address, int(size))
    say(got=address is not None)
    pause()
    say(got=address is not None)


def end_in_the_middle(cuda: Cuda) -> None:
    """Killed while allocating and freeing."""
    say(ready=True)
    pause()
    for number in range(1000):
        address = cuda.allocate("plain", STEP)
        if address is not None and number % 2:
            cuda.free(address)
    os.kill(os.getpid(), signal.SIGKILL)


def at_once(cuda: Cuda, share: str) -> None:
    """The answer to one large allocation, of the driver or of the shim."""
    pointer = ctypes.c_uint64()
    size = ctypes.c_size_t(int(cuda.memory()["total"] * float(share)))
    result = cuda.ask("cuMemAlloc_v2", ctypes.byref(pointer), size)
    say(result=result, refused=result == OUT_OF_MEMORY, **cuda.memory())
    pause()
    say(result=result)


CASES: dict[str, Callable[..., None]] = {
    "fill": fill,
    "cycles": cycles,
    "hold": hold,
    "keep": keep,
    "pieces": pieces,
    "context": context,
    "heap": heap,
    "managed": managed,
    "managed_only": managed_only,
    "killed": end_in_the_middle,
    "at_once": at_once,
    "memory": lambda cuda: say(**cuda.memory()),
}

if __name__ == "__main__":
    CASES[sys.argv[1]](Cuda(), *sys.argv[2:])

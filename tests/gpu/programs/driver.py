"""Plain CUDA without any framework:  driver.py CASE …  prints its findings as JSON."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable

from saying import pause, say

OUT_OF_MEMORY = 2
MIB = 1 << 20
STEP = 64 * MIB
ATTACH_GLOBAL = 1
MULTIPROCESSORS = 16

WORK = b"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry work(.param .u32 us)
{
    .reg .pred %p<3>;
    .reg .b32 %r<6>;
    ld.param.u32 %r1, [us];
    mul.lo.u32 %r2, %r1, 64;
    mov.u32 %r3, %clock;
again:
    mad.lo.u32 %r3, %r3, 1664525, 1013904223;
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra again;
    setp.eq.u32 %p2, %r3, %r1;
    @%p2 trap;
    ret;
}
"""
"""Computes for about `us` microseconds; the trap keeps the compiler from dropping the loop."""


class Cuda:
    """The driver's functions by name, and a context on the first GPU."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.device = device

    def ask(self, name: str, *arguments: object) -> int:
        """The function's return code."""
        return int(getattr(self.library, name)(*arguments))

    def call(self, name: str, *arguments: object) -> None:
        """Call a function that must succeed."""
        if result := self.ask(name, *arguments):
            sys.exit(f"{name} answered {result}")

    def memory(self) -> dict[str, int]:
        """Free and total memory as programs see it."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return {"free": free.value, "total": total.value}

    def allocate(self, kind: str, size: int) -> int | None:
        """An address; None if there is no memory."""
        pointer = ctypes.c_uint64()
        place = ctypes.byref(pointer)
        bytes_ = ctypes.c_size_t(size)
        if kind == "managed":
            result = self.ask("cuMemAllocManaged", place, bytes_, ATTACH_GLOBAL)
        elif kind == "async":
            result = self.ask("cuMemAllocAsync", place, bytes_, None)
        else:
            result = self.ask("cuMemAlloc_v2", place, bytes_)
        if result not in {0, OUT_OF_MEMORY}:
            sys.exit(f"an allocation answered {result}")
        return None if result else pointer.value

    def kernel(self) -> Callable[[int], None]:
        """Loads a kernel with some microseconds of work on all multiprocessors."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), WORK)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"work")
        count = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(count), MULTIPROCESSORS, self.device)

        def launch(us: int) -> None:
            number = ctypes.c_uint(us)
            parameters = (ctypes.c_void_p * 1)(ctypes.addressof(number))
            grid = (count.value, 1, 1, 128, 1, 1, 0)
            self.call("cuLaunchKernel", function, *grid, None, parameters, None)

        return launch


def fill(cuda: Cuda, kind: str) -> None:
    """Allocate everything in pieces; then half of the GPU in one piece must fail."""
    held = []
    while (address := cuda.allocate(kind, STEP)) is not None:
        held.append(address)
    refused = cuda.allocate(kind, cuda.memory()["total"] // 2) is None
    say(held=len(held) * STEP, refused=refused, **cuda.memory())
    pause()
    say(held=len(held) * STEP, refused=refused)


def cycles(cuda: Cuda, kind: str) -> None:
    """Allocate most of the slice a thousand times; free memory before and after."""
    free = "cuMemFree_v2"
    size = int(cuda.memory()["total"] * 0.8)
    before = cuda.memory()["free"]
    for _ in range(1000):
        address = cuda.allocate(kind, size)
        if address is None:
            sys.exit("80 % of the slice could not be had")
        cuda.call(free, ctypes.c_uint64(address))
    cuda.call("cuCtxSynchronize")
    say(before=before, after=cuda.memory()["free"])


def hold(cuda: Cuda, share: str) -> None:
    """Hold part of the slice until the test continues."""
    address = cuda.allocate("plain", int(cuda.memory()["total"] * float(share)))
    say(got=address is not None)
    pause()
    say(got=address is not None)


def busy(cuda: Cuda, seconds: str, us: str) -> None:
    """Kernels one after the other: how many per second."""
    launch = cuda.kernel()
    launch(1)
    cuda.call("cuCtxSynchronize")
    say(ready=True)
    pause()
    began, done, batch = time.monotonic(), 0, max(1, 2000 // int(us))
    while time.monotonic() - began < float(seconds):
        for _ in range(batch):
            launch(int(us))
        cuda.call("cuCtxSynchronize")
        done += batch
    say(rate=done / (time.monotonic() - began))


def launches(cuda: Cuda, number: str) -> None:
    """Very short kernels, as fast as they can be launched."""
    launch = cuda.kernel()
    launch(1)
    cuda.call("cuCtxSynchronize")
    began = time.monotonic()
    for _ in range(int(number)):
        launch(1)
    cuda.call("cuCtxSynchronize")
    say(rate=int(number) / (time.monotonic() - began))


def pointers(cuda: Cuda) -> None:
    """Every way to look up a function must return the same one."""
    same = {}
    for base, exported in (
        ("cuMemAlloc", "cuMemAlloc_v2"),
        ("cuMemGetInfo", "cuMemGetInfo_v2"),
        ("cuLaunchKernel", "cuLaunchKernel"),
        ("cuMemCreate", "cuMemCreate"),
    ):
        found = ctypes.c_void_p()
        known = ctypes.cast(getattr(cuda.library, exported), ctypes.c_void_p).value
        for lookup, rest in (("cuGetProcAddress", ()), ("cuGetProcAddress_v2", (None,))):
            if hasattr(cuda.library, lookup):
                flags = ctypes.c_uint64(0)
                version = 12000 if rest else 11030
                cuda.call(lookup, base.encode(), ctypes.byref(found), version, flags, *rest)
                same[f"{lookup}({base})"] = found.value == known
    say(**same)


def end_in_the_middle(cuda: Cuda) -> None:
    """Killed while allocating and freeing."""
    say(ready=True)
    pause()
    for number in range(10_000_000):
        address = cuda.allocate("plain", STEP)
        if address is not None and number % 2:
            cuda.call("cuMemFree_v2", ctypes.c_uint64(address))
        if number == 999:
            os.kill(os.getpid(), signal.SIGKILL)


CASES: dict[str, Callable[..., None]] = {
    "fill": fill,
    "cycles": cycles,
    "hold": hold,
    "busy": busy,
    "launches": launches,
    "pointers": pointers,
    "killed": end_in_the_middle,
    "memory": lambda cuda: say(**cuda.memory()),
}

if __name__ == "__main__":
    CASES[sys.argv[1]](Cuda(), *sys.argv[2:])

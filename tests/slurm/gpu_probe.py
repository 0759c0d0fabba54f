"""Run inside a session: allocates GPU memory as any program does, by libcuda's own functions.

    gpu_probe.py look                  what the driver shows; {} without a driver
    gpu_probe.py fill                  allocates as much as possible, and frees it
    gpu_probe.py hold                  the same, and keeps it until standard input ends
    gpu_probe.py compute               launches kernels without a pause until standard input ends
    gpu_probe.py take LIBRARY MIB      allocates through the library at a path, and keeps it

Each prints lines of JSON. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import select
import sys

MIB = 1 << 20
OUT_OF_MEMORY = 2


class Gpu:
    """The first GPU visible through a libcuda, with a context on it."""

    def __init__(self, library: str = "libcuda.so.1") -> None:
        self.cuda = ctypes.CDLL(library)
        self.device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.must(self.cuda.cuInit(0))
        self.must(self.cuda.cuDeviceGet(ctypes.byref(self.device), 0))
        retain = self.cuda.cuDevicePrimaryCtxRetain
        self.must(retain(ctypes.byref(self.context), self.device))
        self.must(self.cuda.cuCtxSetCurrent(self.context))
        self.taken: list[tuple[ctypes.c_uint64, int]] = []

    @staticmethod
    def must(code: int) -> None:
        """Exit with the error, if any."""
        if code != 0:
            sys.exit(f"CUDA error {code}")

    def total(self) -> int:
        """Total memory of the device in MiB."""
        size = ctypes.c_size_t()
        self.must(self.cuda.cuDeviceTotalMem_v2(ctypes.byref(size), self.device))
        return size.value // MIB

    def free(self) -> int:
        """Free memory in MiB."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.must(self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        return free.value // MIB

    def take(self, mib: int) -> int:
        """Allocate; the driver's return code."""
        address = ctypes.c_uint64()
        size = ctypes.c_size_t(mib * MIB)
        code: int = self.cuda.cuMemAlloc_v2(ctypes.byref(address), size)
        if code == 0:
            self.taken.append((address, mib))
        return code

    def fill(self) -> dict[str, object]:
        """Allocate in ever smaller pieces until no memory is left."""
        codes = set()
        for mib in (256, 64, 16, 4, 1):
            while (code := self.take(mib)) == 0:
                pass
            codes.add(code)
        return {"taken": sum(mib for _, mib in self.taken), "codes": sorted(codes)}

    def compute(self) -> None:
        """Launch kernels; on the stand-in, their first word is their duration in microseconds."""
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.must(self.cuda.cuModuleLoadData(ctypes.byref(module), b"any"))
        self.must(self.cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"any"))
        length = ctypes.c_uint(1000)
        words = (ctypes.c_void_p * 1)(ctypes.addressof(length))
        sizes = [ctypes.c_uint(1)] * 6
        while not select.select([sys.stdin], [], [], 0)[0]:
            code = self.cuda.cuLaunchKernel(kernel, *sizes, ctypes.c_uint(0), None, words, None)
            self.must(code)
        self.must(self.cuda.cuCtxSynchronize())

    def give_back(self) -> None:
        """Free everything."""
        for address, _ in self.taken:
            self.must(self.cuda.cuMemFree_v2(address))
        self.taken.clear()


def inspect_gpu() -> dict[str, object]:
    """What a program finds, and in which library file."""
    try:
        gpu = Gpu()
    except OSError:
        return {}
    with open("/proc/self/maps", encoding="utf-8") as file:
        paths = {line.split()[-1] for line in file if "libcuda.so" in line}
    return {"total": gpu.total(), "free": gpu.free(), "paths": sorted(paths)}


def emit(message: dict[str, object]) -> None:
    """Print one line and flush."""
    print(json.dumps(message), flush=True)


def main(what: str, *more: str) -> None:
    """Execute a command."""
    if what == "look":
        emit(inspect_gpu())
        return
    gpu = Gpu(*more[:1])
    if what == "compute":
        emit({})
        gpu.compute()
        return
    if what == "take":
        emit({"code": gpu.take(int(more[1]))})
    else:
        emit(gpu.fill())
    if what != "fill":
        sys.stdin.read()
    gpu.give_back()
    emit({"free": gpu.free()})


if __name__ == "__main__":
    main(*sys.argv[1:])

"""CUDA's driver API by ctypes: what the small programs beside this file are written with."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

OUT_OF_MEMORY = 2
NOT_SUPPORTED = 801
"""What the shim says of functions that the driver behind it lacks."""
MIB = 1 << 20
STEP = 64 * MIB
ATTACH_GLOBAL = 1
MULTIPROCESSORS = 16
NON_BLOCKING = 1
LOOPS = int(os.environ.get("SLIPWAY_GPU_LOOPS", "64"))
"""Rounds of the kernel that take a microsecond on this GPU; the suite measures it once."""


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
        self.context = context

    def has(self, name: str) -> bool:
        """Whether this driver has a function. (The shim exports more, for programs to link.)"""
        found, version = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        base = name.removesuffix("_v2").encode()
        place = ctypes.byref(found)
        failed = self.ask("cuGetProcAddress", base, place, version, ctypes.c_uint64(0))
        return not failed and bool(found.value)

    def ask(self, name: str, *arguments: object) -> int:
        """The function's return code."""
        return int(getattr(self.library, name)(*arguments))

    def attempt(self, name: str, *arguments: object) -> bool:
        """Call a function that some drivers (the stand-in) lack; whether this one has it."""
        if not hasattr(self.library, name):
            return False
        result = self.ask(name, *arguments)
        if result not in {0, NOT_SUPPORTED}:
            sys.exit(f"{name} answered {result}")
        return not result

    def call(self, name: str, *arguments: object) -> None:
        """Call a function that must succeed."""
        if result := self.ask(name, *arguments):
            sys.exit(f"{name} answered {result}")

    def wait(self) -> None:
        """Until the GPU has done everything."""
        self.call("cuCtxSynchronize")

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

    def free(self, address: int) -> None:
        """Free what `allocate` gave (not "async")."""
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def stream(self) -> ctypes.c_void_p:
        """A stream that does not wait for the default one."""
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), NON_BLOCKING)
        return made

    def function(self, file: str, name: bytes) -> ctypes.c_void_p:
        """A kernel out of a file of PTX beside this one."""
        code = (Path(__file__).parent / file).read_bytes()
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), code)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name)
        return function


class Kernel:
    """The kernel of work.ptx on all multiprocessors."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._function = cuda.function("work.ptx", b"work")
        count = ctypes.c_int()
        cuda.call("cuDeviceGetAttribute", ctypes.byref(count), MULTIPROCESSORS, cuda.device)
        self._blocks = count.value

    def ask(self, us: int, stream: ctypes.c_void_p | None = None, counter: int = 0) -> int:
        """Launch some microseconds of work; the driver's answer."""
        numbers = ctypes.c_uint(us), ctypes.c_uint(LOOPS), ctypes.c_uint64(counter)
        parameters = (ctypes.c_void_p * 3)(*map(ctypes.addressof, numbers))
        grid = (self._blocks, 1, 1, 128, 1, 1, 0)
        return self._cuda.ask("cuLaunchKernel", self._function, *grid, stream, parameters, None)

    def __call__(self, us: int, stream: ctypes.c_void_p | None = None, counter: int = 0) -> None:
        """The same, which must succeed."""
        if result := self.ask(us, stream, counter):
            sys.exit(f"cuLaunchKernel answered {result}")


class Counter:
    """A number in the GPU's memory that kernels count up."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        address = cuda.allocate("plain", 4)
        if address is None:
            sys.exit("no memory for a counter")
        zero = ctypes.c_uint64(address), 0, ctypes.c_size_t(1)
        self.address = address if cuda.attempt("cuMemsetD32_v2", *zero) else 0

    def value(self) -> int | None:
        """What has been counted; None if this driver cannot tell."""
        if not self.address:
            return None
        found = ctypes.c_uint()
        source = ctypes.c_uint64(self.address)
        self._cuda.call("cuMemcpyDtoH_v2", ctypes.byref(found), source, ctypes.c_size_t(4))
        return found.value

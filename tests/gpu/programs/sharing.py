"""Memory shared between processes:  sharing.py CASE …  prints its findings as JSON."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable

from driver import Cuda
from saying import pause, say

LAZY_PEERS = 1


class Handle(ctypes.Structure):
    """CUipcMemHandle."""

    _fields_ = (("bytes", ctypes.c_ubyte * 64),)


def export(cuda: Cuda, size: str) -> None:
    """Memory that another process can open."""
    address, handle = cuda.allocate("plain", int(size)), Handle()
    if address is None:
        sys.exit(f"{size} bytes could not be had")
    cuda.call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(address))
    say(handle=bytes(handle.bytes).hex(), pid=os.getpid(), **cuda.memory())
    pause()
    say(**cuda.memory())


def open_it(cuda: Cuda, shared: str) -> None:
    """The same memory here."""
    handle, address = Handle.from_buffer_copy(bytes.fromhex(shared)), ctypes.c_uint64()
    place = ctypes.byref(address)
    cuda.call("cuIpcOpenMemHandle_v2", place, handle, LAZY_PEERS)
    say(pid=os.getpid(), **cuda.memory())
    pause()
    cuda.call("cuIpcCloseMemHandle", address)
    say(**cuda.memory())


CASES: dict[str, Callable[..., None]] = {"export": export, "open": open_it}

if __name__ == "__main__":
    CASES[sys.argv[1]](Cuda(), *sys.argv[2:])

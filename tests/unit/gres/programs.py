"""Programs that use the stand-in driver, written in Python."""

from __future__ import annotations

import subprocess
import sys

from tests.unit.gres.conftest import MIB, Standin

CONTEXT = 64 * MIB
RESERVED = 128 * MIB
"""What the stand-in driver keeps of a GPU."""

# Available to programs: d is libcuda, MIB, and ok() fails on errors.
PREAMBLE = """
import ctypes as c, os, sys
d = c.CDLL(sys.argv[1])
MIB = 1 << 20
size, u64 = c.c_size_t, c.c_uint64
def ok(result): assert result == 0, result
def start(device=0):
    ok(d.cuInit(0))
    context = c.c_void_p()
    ok(d.cuDevicePrimaryCtxRetain(c.byref(context), device))
    ok(d.cuCtxSetCurrent(context))
def free():
    left, total = size(), size()
    ok(d.cuMemGetInfo_v2(c.byref(left), c.byref(total)))
    return left.value
def alloc(bytes):
    address = u64()
    return d.cuMemAlloc_v2(c.byref(address), size(bytes)), address
def run(us, stream=None):
    value = c.c_uint(us)
    values = (c.c_void_p * 1)(c.addressof(value))
    ok(d.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, stream, values, None))
"""


def program(standin: Standin, text: str, **environment: str) -> subprocess.Popen[str]:
    """A Python program that uses the driver."""
    return subprocess.Popen(
        [sys.executable, "-c", PREAMBLE + text, str(standin.cuda)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def output(standin: Standin, text: str, **environment: str) -> str:
    """The output of a program that succeeds."""
    running = program(standin, text, **environment)
    printed, _ = running.communicate(timeout=30)
    assert running.returncode == 0
    return printed.strip()

"""Check that NVML shows a session its share of a GPU, and nothing more.

`check.py LIBRARY GPU=BYTES…`, a separate process, since it loads the node's driver; each GPU
by its UUID, with 0 for a whole one. Prints an error in one line.
"""

from __future__ import annotations

import ctypes
import sys

MIB = 1 << 20
LEEWAY = 2 * MIB


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class CheckFailed(Exception):
    """NVML does not show the granted share."""


def check(path: str, shares: dict[str, int]) -> None:
    """Raise CheckFailed if a GPU is missing or extra, or its size differs from the share."""
    library = ctypes.CDLL(path)
    _must(library.nvmlInit_v2(), "nvmlInit")
    count = ctypes.c_uint()
    _must(library.nvmlDeviceGetCount_v2(ctypes.byref(count)), "nvmlDeviceGetCount")
    # NVML counts the parent GPU, not its MIG devices.
    if count.value != len(shares) and not any(gpu.startswith("MIG-") for gpu in shares):
        raise CheckFailed(f"it shows {count.value} GPUs instead of {len(shares)}")
    for gpu, share in shares.items():
        total = _total(library, gpu)
        if share and abs(total - share) > LEEWAY:
            raise CheckFailed(
                f"it shows {total // MIB} MiB of memory instead of {share // MIB} MiB"
            )


def _total(library: ctypes.CDLL, gpu: str) -> int:
    device, memory = ctypes.c_void_p(), Memory()
    code = library.nvmlDeviceGetHandleByUUID(gpu.encode(), ctypes.byref(device))
    _must(code, "nvmlDeviceGetHandleByUUID")
    code = library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
    _must(code, "nvmlDeviceGetMemoryInfo")
    return int(memory.total)


def _must(code: int, call: str) -> None:
    if code != 0:
        raise CheckFailed(f"the driver answered {call} with error {code}")


def main(arguments: list[str]) -> int:
    """Run the check; returns 1 and prints a line if something is wrong."""
    path, *shares = arguments
    expected = {gpu: int(memory) for gpu, _, memory in (word.partition("=") for word in shares)}
    try:
        check(path, expected)
    except (OSError, AttributeError, CheckFailed) as error:
        print(error, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

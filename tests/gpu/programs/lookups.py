"""Every way to look up a function of CUDA's driver:  lookups.py REAL-LIBCUDA  prints JSON.

In a session: what the shim answers, compared with what the driver behind it answers. REAL-LIBCUDA
is that driver's library, as the shim has loaded it.
"""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from saying import say

FLAGS = (0, 1, 2)
"""The default, and each of the two kinds of default stream."""
FORMS = {"cuGetProcAddress": 11030, "cuGetProcAddress_v2": 12000}
LIMITED = (
    "cuMemAlloc_v2 cuMemAllocPitch_v2 cuMemAllocManaged cuMemAllocAsync cuMemAllocFromPoolAsync "
    "cuMemCreate cuMemFree_v2 cuMemGetInfo_v2 cuDeviceTotalMem_v2 cuArrayCreate_v2 "
    "cuArray3DCreate_v2 cuMipmappedArrayCreate cuLaunchKernel cuLaunchKernelEx "
    "cuLaunchCooperativeKernel cuGraphLaunch"
).split()
"""Functions that a slice depends on: no look-up may answer the driver's own."""


class Symbol(ctypes.Structure):
    """Dl_info."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class Library:
    """One of the two libraries."""

    def __init__(self, name: str) -> None:
        self.library = ctypes.CDLL(name)

    def address(self, symbol: str) -> int:
        """Of an exported function; 0 if there is none."""
        try:
            return ctypes.cast(getattr(self.library, symbol), ctypes.c_void_p).value or 0
        except AttributeError:
            return 0

    def look_up(self, form: str, name: str, version: int, flags: int) -> tuple[int, int]:
        """The driver's answer and the address."""
        found = ctypes.c_void_p()
        rest = (None,) if form.endswith("_v2") else ()
        place = ctypes.byref(found)
        ask = getattr(self.library, form)
        return int(ask(name.encode(), place, version, ctypes.c_uint64(flags), *rest)), (
            found.value or 0
        )


def symbol_at(address: int) -> tuple[str, str]:
    """File and name of the function at an address."""
    found = Symbol()
    libc = ctypes.CDLL(None)
    if not address or not libc.dladdr(ctypes.c_void_p(address), ctypes.byref(found)):
        return "", ""
    return (found.file or b"").decode(), (found.name or b"").decode()


def pairs(driver: int) -> Iterator[tuple[str, int]]:
    """Names with every version that brought a form, and with this driver's own version."""
    for line in (Path(__file__).parent / "versions.txt").read_text().splitlines():
        name, *versions = line.split()
        if name != "#":
            yield from ((name, version) for version in {*map(int, versions), driver})


def wrong_answer(shim: Library, real: Library, ours: int, theirs: int) -> str:
    """Why the shim's address is wrong, where the driver's is `theirs`; "" if it is right."""
    if not ours or not theirs:
        return "" if ours == theirs else "refused" if theirs else "found by the shim alone"
    if ours == theirs:
        same = [name for name in LIMITED if theirs == real.address(name)]
        same += [f"{name}_ptsz" for name in LIMITED if theirs == real.address(f"{name}_ptsz")]
        return f"not limited: {same[0]}" if same else ""
    _, name = symbol_at(ours)
    if ours != shim.address(name):
        return f"an address that is neither the shim's nor the driver's ({name})"
    return "" if real.address(name) == theirs else f"another function or version: {name}"


def main(path: str) -> None:
    """Compare all of them."""
    shim, real = Library("libcuda.so.1"), Library(path)
    if shim.library.cuInit(0):
        sys.exit("cuInit failed")
    version = ctypes.c_int()
    shim.library.cuDriverGetVersion(ctypes.byref(version))
    wrong, counts = [], Counter[str]()
    for form, since in FORMS.items():
        if not real.address(form) or version.value < since:
            continue
        for name, asked in pairs(version.value):
            for flags in FLAGS:
                ours = shim.look_up(form, name, asked, flags)
                theirs = real.look_up(form, name, asked, flags)
                why = wrong_answer(shim, real, ours[1], theirs[1])
                if not why and ours[0] != theirs[0]:
                    why = f"answers {ours[0]}, the driver {theirs[0]}"
                counts["asked"] += 1
                counts["found"] += bool(theirs[1])
                counts["wrapped"] += bool(ours[1] and ours[1] != theirs[1])
                if why:
                    wrong.append(f"{form}({name}, {asked}, {flags}): {why}")
    behind = symbol_at(real.address("cuInit"))[0]
    first = symbol_at(shim.address("cuMemAlloc_v2"))[0]
    say(
        wrong=wrong[:20],
        wrongs=len(wrong),
        shim=first,
        driver=behind,
        version=version.value,
        **counts,
    )


main(*sys.argv[1:])

"""Check a SIF file before Apptainer opens it, for clear error messages."""

from __future__ import annotations

import os
import platform
import struct

from portal.node.batch.image import ImageError

MAGIC = b"SIF_MAGIC"
HEADER = 128
"""Bytes of the global header: launch script, magic, version, architecture, id, eight numbers."""
_ARCHITECTURES = {
    b"01": "386", b"02": "amd64", b"03": "arm", b"04": "arm64", b"05": "ppc64", b"06": "ppc64le",
    b"07": "mips", b"08": "mipsle", b"09": "mips64", b"10": "mips64le", b"11": "s390x",
    b"12": "riscv64",
}  # fmt: skip
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


def architecture() -> str:
    """This node's architecture, as registries and SIF files name it."""
    machine = platform.machine()
    return _MACHINES.get(machine, machine)


def check(descriptor: int, name: str, max_mb: int) -> None:
    """Reject truncated or foreign SIF files; raises ImageError."""
    size = os.fstat(descriptor).st_size
    if size > max_mb << 20:
        raise ImageError(
            f"{name} has {size >> 20:,} MiB, and images may have {max_mb:,} MiB here. "
            "Ask the administrators, or build it with less in it"
        )
    header = os.pread(descriptor, HEADER, 0)
    if header[32 : 32 + len(MAGIC)] != MAGIC:
        raise ImageError(f"{name} is not an Apptainer image (SIF). Build it with `apptainer build`")
    if len(header) < HEADER:
        raise ImageError(_cut_off(name))
    made_for = _ARCHITECTURES.get(header[45:47], "an unknown architecture")
    if made_for != architecture():
        raise ImageError(
            f"{name} is made for {made_for}, but the node is {architecture()}. "
            "Build it on a machine of this kind"
        )
    table, table_size, data, data_size = struct.unpack("<4q", header[96:128])
    if min(table, table_size, data, data_size) < 0 or size < max(
        table + table_size, data + data_size
    ):
        raise ImageError(_cut_off(name))


def _cut_off(name: str) -> str:
    return f"{name} is broken: it is shorter than its header says. Copy or build it again"

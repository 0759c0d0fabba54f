"""Check a SIF file before Apptainer opens it, for clear error messages."""

from __future__ import annotations

import os
import platform

from portal.node.batch.image import ImageError
from portal.node.common.sif import HEADER, Header, architecture_of_machine, has_magic


def architecture() -> str:
    """This node's architecture, as registries and SIF files name it."""
    return architecture_of_machine(platform.machine())


def check(descriptor: int, name: str, max_mb: int) -> None:
    """Reject truncated and foreign SIF files, and those for other nodes; raises ImageError."""
    size = os.fstat(descriptor).st_size
    if size > max_mb << 20:
        raise ImageError(
            f"{name} has {size >> 20:,} MiB, and images may have {max_mb:,} MiB here. "
            "Ask the administrators, or build it with less in it"
        )
    head = os.pread(descriptor, HEADER.size, 0)
    if not has_magic(head):
        raise ImageError(f"{name} is not an Apptainer image (SIF). Build it with `apptainer build`")
    if len(head) < HEADER.size:
        raise ImageError(_cut_off(name))
    header = Header(head)
    made_for = header.architecture or "an unknown architecture"
    if made_for != architecture():
        raise ImageError(
            f"{name} is made for {made_for}, but the node is {architecture()}. "
            "Build it on a machine of this kind"
        )
    parts = ((header.table, header.table_size), (header.data, header.data_size))
    if any(min(part) < 0 or size < sum(part) for part in parts):
        raise ImageError(_cut_off(name))


def _cut_off(name: str) -> str:
    return f"{name} is broken: it is shorter than its header says. Copy or build it again"

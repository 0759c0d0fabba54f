"""Check whether all slices of a GPU can be full at the same time."""

from __future__ import annotations

from collections.abc import Iterator

from portal.node.common.fgpu import MIB, GpuKind
from portal.node.gpu.checks import Finding
from portal.node.gpu.nvml import Device
from portal.node.gpu.slices import divisible


def check_memory(text: str, device: Device, kind: GpuKind, context: int) -> Iterator[Finding]:
    """Compare the memory displayed to users with the GPU's; `text` names the GPU."""
    if kind.sharing != "shared":
        return
    usable, contexts = device.memory - device.reserved, kind.sessions * context
    total_mb = divisible(device, kind, context) // MIB
    yield (
        "ok",
        f"{text}: {total_mb} MiB can be divided into slices ({device.reserved // MIB} MiB are the "
        f"driver's, {(usable // MIB) - total_mb} MiB are kept for the contexts of {kind.sessions} "
        "sessions)",
    )
    if contexts > usable // 4:
        yield (
            "note",
            f"{text}: the contexts of {kind.sessions} sessions ({context // MIB} MiB each, "
            "gpu.context_mb) take more than a quarter of it, so not all of them can fill their "
            "slices at once: choose a larger `step`",
        )
    if kind.memory_mb > total_mb:
        yield (
            "note",
            f"{text}: the settings give {kind.name or 'it'} {kind.memory_mb} MiB, so slices are "
            f'smaller than displayed to users. Set memory = "{total_mb}m" for this kind',
        )

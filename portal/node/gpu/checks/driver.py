"""Check the driver's state on a node: faults that slow sessions down or make CUDA fail."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from portal.node.common.fgpu import GpuKind
from portal.node.gpu import untrusted
from portal.node.gpu.checks import Finding
from portal.node.gpu.nvml import Device, Nvml

DEFAULT, PROHIBITED, EXCLUSIVE_PROCESS = 0, 2, 3
"""Compute modes of NVML; 1 is no longer in use."""
NOT_STARTED, IN_PROGRESS, COMPLETED = 1, 2, 3
"""States of a GPU's registration with the fabric manager; 0 is a GPU without NVSwitch."""
FABRIC_MANAGER = "nv-fabricmanage"
"""Its name in /proc, which has 15 characters."""


@dataclass(frozen=True)
class KernelPaths:
    """Folders in which the kernel shows its state."""

    dev: Path = Path("/dev")
    proc: Path = Path("/proc")
    modules: Path = Path("/sys/module")


KERNEL_PATHS = KernelPaths()


def check_gpu(nvml: Nvml, text: str, device: Device, kind: GpuKind | None) -> Iterator[Finding]:
    """Check one GPU, or one MIG device; `text` names it."""
    if device.mig:
        if len(device.files) < 3:
            yield (
                "wrong",
                f"{text}: it has no capabilities in /proc/driver/nvidia-caps/mig-minors, so no job "
                "can open it: restart the driver after MIG was configured",
            )
        return
    if nvml.persistence(device.uuid) is False:
        yield (
            "note",
            f"{text}: persistence mode is off, so each Prolog and each first program waits seconds "
            "for the GPU to start: enable nvidia-persistenced.service",
        )
    yield from _check_mode(nvml.compute_mode(device.uuid), text, kind)
    yield from _check_fabric(nvml.fabric(device.uuid), text)


def _check_mode(mode: int | None, text: str, kind: GpuKind | None) -> Iterator[Finding]:
    shared = kind is not None and kind.sharing == "shared"
    if mode == PROHIBITED:
        yield "wrong", f"{text}: compute mode PROHIBITED lets no program run: nvidia-smi -c DEFAULT"
    elif mode is None or kind is None or not shared:
        return
    elif kind.compute == "mps" and mode != EXCLUSIVE_PROCESS:
        yield (
            "wrong",
            f'{text}: for compute = "mps" its compute mode must be EXCLUSIVE_PROCESS, or programs '
            "can leave MPS: nvidia-smi -c EXCLUSIVE_PROCESS",
        )
    elif kind.compute != "mps" and mode != DEFAULT:
        yield (
            "wrong",
            f"{text}: its compute mode lets one process at a time use it: nvidia-smi -c DEFAULT",
        )


def _check_fabric(registration: tuple[int, int] | None, text: str) -> Iterator[Finding]:
    if registration is None:
        return
    state, status = registration
    if state in (NOT_STARTED, IN_PROGRESS):
        yield (
            "wrong",
            f"{text}: it is not registered with the fabric manager, so CUDA fails with error 802: "
            "start nvidia-fabricmanager.service, of the driver's own version",
        )
    elif state == COMPLETED and status != 0:
        yield (
            "wrong",
            f"{text}: its registration with the fabric manager has failed (NVML's error {status}): "
            "see /var/log/fabricmanager.log",
        )


def check_node(devices: Sequence[Device], paths: KernelPaths = KERNEL_PATHS) -> Iterator[Finding]:
    """Check device files and kernel modules."""
    yield from _check_uvm(paths)
    yield from _check_switches(paths)
    for file in sorted({file for device in devices for file in device.files}):
        if not (paths.dev / Path(file).relative_to("/dev")).exists():
            yield "wrong", f"{file} is missing: create it at boot by nvidia-modprobe"


def _check_uvm(paths: KernelPaths) -> Iterator[Finding]:
    if not (paths.dev / "nvidia-uvm").exists():
        yield (
            "wrong",
            "/dev/nvidia-uvm is missing, so CUDA fails with error 999 in sessions: create it at "
            "boot by nvidia-modprobe -u -c 0 (or enable nvidia-persistenced.service)",
        )
    else:
        yield "ok", "/dev/nvidia-uvm is there"
        if not (paths.dev / "nvidia-uvm-tools").exists():
            yield (
                "note",
                "/dev/nvidia-uvm-tools is missing, so profilers do not see managed memory: "
                "nvidia-modprobe -u -c 0",
            )
    parameter = paths.modules / "nvidia_uvm" / "parameters" / "uvm_disable_hmm"
    if _read(parameter).strip() == "N":
        yield (
            "note",
            "nvidia_uvm may put ordinary memory of programs on the GPU (HMM), which neither the "
            "shim nor the watchdog can count: options nvidia_uvm uvm_disable_hmm=1 in "
            "/etc/modprobe.d",
        )


def _check_switches(paths: KernelPaths) -> Iterator[Finding]:
    """Check the fabric manager's process: GPUs before Hopper do not report their registration."""
    if not any(paths.dev.glob("nvidia-nvswitch[0-9]*")):
        return
    # Any user can give a process this name: only root's processes count.
    names = (_read(file).strip() for file in paths.proc.glob("[0-9]*/comm") if _is_roots(file))
    if FABRIC_MANAGER in names:
        yield "ok", "the fabric manager runs"
    else:
        yield (
            "wrong",
            "this machine has NVSwitches and no fabric manager runs, so CUDA fails with error 802: "
            "start nvidia-fabricmanager.service",
        )


def _read(file: Path) -> str:
    try:
        return untrusted.read(file)
    except OSError:
        return ""


def _is_roots(file: Path) -> bool:
    try:
        return file.stat().st_uid == os.geteuid()
    except OSError:
        return False

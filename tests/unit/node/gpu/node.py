"""A fake node: its GPUs as reported by NVML, and its settings."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import cast

from portal.node.common.fgpu import MIB, GpuKind, kinds_as_json
from portal.node.common.gres import Gres
from portal.node.gpu.nvml import Device, Nvml, NvmlError
from portal.node.gpu.slurm import NodeJob

RECORDED = Path(__file__).parents[3] / "recorded"

DEMO = GpuKind("standin8g", "Stand-in", 8192, Fraction(1, 2), Fraction(1, 2))
A100 = GpuKind("a100", "A100", 81920, Fraction(1, 4), Fraction(1, 2))
MIG = GpuKind("1g.10gb", "MIG", 9728, Fraction(1), Fraction(1), sharing="mig", compute="none")


CONTEXT = 64 * MIB


def gpu(
    number: int, memory_mb: int = 8576, name: str = "Stand-in 8GB", reserved_mb: int = 128
) -> Device:
    """A GPU of a node: that of the embedded cluster, which can give 8 GiB to four sessions."""
    files = (f"/dev/nvidia{number}",)
    memory, reserved = memory_mb * MIB, reserved_mb * MIB
    return Device(f"GPU-{number}", name, memory, number, files, reserved=reserved)


class FakeNvml:
    """NVML's reports; `broken` makes it fail as after a driver's reload."""

    def __init__(self, *devices: Device) -> None:
        self.found = list(devices)
        self.held: dict[str, dict[int, int]] = {}
        self.share: dict[str, dict[int, float] | None] = {}
        self.in_use: dict[str, int] = {}
        """Bytes in use by GPU; the sum over the processes where there is none."""
        self.version = (580, 65)
        self.broken: set[str] = set()
        self.open = 0

    def connect(self) -> Nvml:
        """Stands in for `Nvml()`."""
        self._fail("driver")
        self.open += 1
        return cast(Nvml, self)

    def close(self) -> None:
        self.open -= 1

    def devices(self) -> list[Device]:
        return self.found

    def driver(self) -> tuple[int, ...]:
        return self.version

    def persistence(self, uuid: str) -> bool | None:
        return True

    def compute_mode(self, uuid: str) -> int | None:
        return 0

    def fabric(self, uuid: str) -> tuple[int, int] | None:
        return None

    def processes(self, uuid: str) -> dict[int, int]:
        self._fail(uuid)
        return self.held.get(uuid, {})

    def used(self, uuid: str) -> int | None:
        return self.in_use.get(uuid, sum(self.held.get(uuid, {}).values()))

    def busy(self, uuid: str, since: int) -> dict[int, float] | None:
        return self.share.get(uuid, {})

    def _fail(self, what: str) -> None:
        if what in self.broken:
            raise NvmlError(f"{what} is lost", 15)


def settings_file(
    folder: Path, *kinds: GpuKind, margin_mb: int = 256, context_mb: int = 64
) -> Path:
    """Write the settings as `slipway render gpu` does."""
    file = folder / "gpu.json"
    sizes = {"margin_mb": margin_mb, "context_mb": context_mb}
    file.write_text(json.dumps({"kinds": kinds_as_json(kinds), **sizes}))
    return file


def answer(*gres: Gres, over: bool = False) -> Callable[[int, str], NodeJob]:
    """A Slurm that reports the same for every job."""
    return lambda job, node: NodeJob(os.getuid(), os.getgid(), over, gres)


class Proc:
    """Processes as the kernel shows them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def add(
        self,
        pid: int,
        cgroup: str,
        uid: int = 1001,
        *,
        killed: bool = False,
        started: int = 1,
        name: bytes = b"python3",
        mounts: bytes = b"",
        waits: bool = True,
        traced: int = 0,
    ) -> None:
        """A process in a step's cgroup; `killed`: SIGKILL is pending; `waits`: uninterruptibly."""
        place = self.folder / str(pid)
        thread = place / "task" / str(pid)
        thread.mkdir(parents=True, exist_ok=True)
        escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
        pending = b"0000000000000100" if killed else b"0000000000000000"
        uids = b"\t".join([str(uid).encode()] * 4)
        (place / "status").write_bytes(
            b"Name:\t" + escaped + b"\nUid:\t" + uids + b"\nShdPnd:\t" + pending + b"\n"
        )
        fields = [
            "D" if waits else "R",
            *["1"] * 5,
            "4194304",
            *["1"] * 12,
            str(started),
            *["1"] * 20,
        ]
        stat = str(pid).encode() + b" (" + name + b") " + " ".join(fields).encode() + b"\n"
        (place / "stat").write_bytes(stat)
        (thread / "stat").write_bytes(stat)
        (thread / "status").write_bytes(b"TracerPid:\t%d\n" % traced)
        (place / "comm").write_bytes(name + b"\n")
        scope = f"/system.slice/slurmstepd.scope/{cgroup}" if cgroup else "/init.scope"
        (place / "cgroup").write_text(f"0::{scope}\n")
        (place / "mountinfo").write_bytes(mounts)

    def remove(self, pid: int) -> None:
        """The process has exited."""
        shutil.rmtree(self.folder / str(pid))

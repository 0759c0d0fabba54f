"""A node with jobs, processes and a watchdog."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.node.common.fgpu import MIB
from portal.node.gpu import slices
from portal.node.gpu.slices import JobSlice, Part
from portal.node.gpu.slurm import NodeJob
from portal.node.gpu.watchdog import watch
from tests.unit.node.gpu.node import FakeNvml, answer, gpu

NOW = 1_795_270_421.25
MARGIN = 256 * MIB
QUARTER = JobSlice("limiter", (Part("GPU-0", 2048 * MIB, 25),))


class Node:
    """A node with jobs, processes and a watchdog."""

    def __init__(self, folder: Path) -> None:
        self.jobs = folder / "jobs"
        self.proc = folder / "proc"
        self.cgroups = folder / "cgroup"
        self.uvm = folder / "nvidia-uvm"
        self.uvm.touch()
        self.nvml = FakeNvml(gpu(0), gpu(1))
        self.logged: list[str] = []
        self.ask = answer()
        self.running: list[subprocess.Popen[bytes]] = []
        self.watch = self.watchdog()
        self.now = NOW - 1

    def watchdog(self) -> watch.Watch:
        """A new watchdog, as after a restart."""
        return watch.Watch(
            MARGIN,
            "n1",
            jobs=self.jobs,
            proc=self.proc,
            cgroups=self.cgroups,
            uvm=self.uvm,
            connect=self.nvml.connect,
            ask=self._asked,
            log=self.logged.append,
        )

    def look(self, times: int) -> None:
        """Poll so many times, a second apart."""
        for _ in range(times):
            self.now += 1
            self.watch.poll(self.now)

    def _asked(self, job: int, name: str) -> NodeJob:
        return self.ask(job, name)

    def job(self, job: int, slice_: JobSlice = QUARTER) -> None:
        """Run Prolog for a job."""
        owner = os.getuid(), os.getgid()
        slices.write(self.jobs, job, owner, {"slice": slice_.text()})

    def process(self, job: int, memory_mb: int, gpu: str = "GPU-0") -> subprocess.Popen[bytes]:
        """A real process that belongs to a job according to /proc."""
        child = subprocess.Popen(["sleep", "60"])
        self.running.append(child)
        place = self.proc / str(child.pid)
        place.mkdir(parents=True)
        self.move(child.pid, job)
        self.name(child.pid, b"python3")
        self.threads(child.pid, exiting=[False])
        self.nvml.held.setdefault(gpu, {})[child.pid] = memory_mb * MIB
        return child

    def name(self, pid: int, name: bytes) -> None:
        """Set a process's name, as the kernel shows it: it escapes newlines and backslashes."""
        escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
        status = b"Name:\t" + escaped + b"\nUid:\t1001\t1001\t1001\t1001\n"
        (self.proc / str(pid) / "comm").write_bytes(name + b"\n")
        (self.proc / str(pid) / "status").write_bytes(status + b"ShdPnd:\t0000000000000000\n")

    def threads(self, pid: int, exiting: list[bool]) -> None:
        """Set which threads of a process run exit(); the first one gives it its state."""
        for number, ends in enumerate(exiting):
            flags = 0x40000C if ends else 0x400000
            fields = ["Z" if ends else "S", *["1"] * 5, str(flags), *["1"] * 40]
            text = f"{pid + number} (py (t) on) {' '.join(fields)}"
            thread = self.proc / str(pid) / "task" / str(pid + number)
            thread.mkdir(parents=True, exist_ok=True)
            (thread / "stat").write_text(text)
            if number == 0:
                (self.proc / str(pid) / "stat").write_text(text)

    def map_managed(self, pid: int, mib: int) -> None:
        """Managed memory of a process, as the kernel lists it."""
        start, device = 0x7F0000000000, self.uvm.stat()
        file = f"{os.major(device.st_dev):02x}:{os.minor(device.st_dev):02x} {device.st_ino}"
        (self.proc / str(pid) / "maps").write_text(
            "55d000000000-55d000001000 r--p 00000000 fd:01 123 /usr/bin/python3\n"
            f"{start:x}-{start + mib * MIB:x} rw-s {start:x} {file} /dev/nvidia-uvm\n"
            f"{start - 4096:x}-{start:x} rw-s 00000000 00:06 701 /dev/nvidiactl\n"
        )

    def move(self, pid: int, job: int) -> None:
        """Set the process's cgroup."""
        path = f"/system.slice/slurmstepd.scope/job_{job}/step_batch/user/task_0"
        (self.proc / str(pid) / "cgroup").write_text(f"0::{path}\n")

    def usage(self, job: int) -> dict[str, Any]:
        """The usage that the session reads."""
        found: dict[str, Any] = json.loads((self.jobs / str(job) / "usage.json").read_text())
        return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    found = Node(tmp_path)
    yield found
    for child in found.running:
        child.kill()
        child.wait()


def killed(child: subprocess.Popen[bytes]) -> bool:
    try:
        return child.wait(0.5) == -9
    except subprocess.TimeoutExpired:
        return False

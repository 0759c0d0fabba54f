"""Root's watchdog over the sessions of this suite: the real one, with NVML of the real driver.

    python -m tests.gpu.watchdog MARGIN_MIB      until it is killed; its log is on stderr

Without Slurm, a process belongs to the session named in its environment, and no job is ever over.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from portal.node.gpu import cgroups, slurm
from portal.node.gpu.watchdog import watch
from portal.node.gpu.watchdog.processes import UVM
from tests.gpu.machine import LOGS, ROOT, Gpu
from tests.gpu.program import JOB
from tests.gpu.session import JOBS

MARGIN = 1024
"""MiB, as the settings' default."""
STARTING = 10.0


def job_of(pid: int, proc: Path = cgroups.PROC) -> int | None:
    """The session that a process was started in."""
    try:
        words = (proc / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for word in words:
        name, _, value = word.partition(b"=")
        if name == JOB.encode() and value.isdigit():
            return int(value)
    return None


def _ask(*_words: object) -> Any:
    raise slurm.SlurmError("there is no Slurm here")


def main(margin: str) -> None:
    """Watch for ever."""
    gpu = Gpu.find()
    for module in list(sys.modules.values()):
        if module.__name__.startswith("portal.node.gpu") and hasattr(module, "job_of"):
            vars(module)["job_of"] = job_of
    standin = gpu.driver.standin
    uvm = standin / "nvidia-uvm" if standin else UVM
    dog = watch.Watch(int(margin) << 20, "here", jobs=JOBS, uvm=uvm, connect=gpu.connect, ask=_ask)
    print("watching", file=sys.stderr, flush=True)
    dog.run()


class Watchdog:
    """The watchdog as a process beside a case."""

    def __init__(self, log: Path, process: subprocess.Popen[bytes]) -> None:
        self._log = log
        self._process = process

    def lines(self) -> list[str]:
        """What it has said so far."""
        return self._log.read_text(errors="replace").splitlines()

    def about(self, number: int) -> list[str]:
        """What it has said about a session."""
        return [line for line in self.lines() if f"job {number}:" in line]

    @property
    def running(self) -> bool:
        return self._process.poll() is None


@contextlib.contextmanager
def watching(name: str, margin: int = MARGIN) -> Iterator[Watchdog]:
    """Start it, and end it afterwards."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"watchdog-{name}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.watchdog", str(margin)],
            cwd=ROOT,
            stderr=stream,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )
    dog = Watchdog(log, process)
    try:
        until = time.monotonic() + STARTING
        while dog.running and "watching" not in dog.lines() and time.monotonic() < until:
            time.sleep(0.05)
        if "watching" not in dog.lines():
            raise RuntimeError(f"the watchdog did not start: {dog.lines()}")
        yield dog
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])

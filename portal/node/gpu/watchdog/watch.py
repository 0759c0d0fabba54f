"""The watchdog: records each job's use once a second, and ends processes that exceed its slice.

The shim inside a session prevents programs from exceeding it by accident; the watchdog stops those
that bypass it. The driver reports what each process on the node holds, however it was allocated.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from portal.node.gpu import slices, slurm
from portal.node.gpu.cgroups import CGROUPS, PROC
from portal.node.gpu.nvml import Nvml, NvmlError
from portal.node.gpu.prolog import Ask
from portal.node.gpu.watchdog.enforce import Enforcer, Gpu
from portal.node.gpu.watchdog.heartbeat import Heartbeat
from portal.node.gpu.watchdog.jobs import Jobs, Log, Watched, log_line
from portal.node.gpu.watchdog.neighbours import Measurement, Neighbours
from portal.node.gpu.watchdog.processes import REMEMBERED, UVM, Processes

PAUSE = 1.0


@dataclass
class Use:
    """A job's use of its GPUs at one poll."""

    memory: dict[str, dict[int, int]] = field(default_factory=dict)
    """Bytes by PID, by GPU."""
    busy: list[float] | None = None


class Watch:
    """The watchdog of one node."""

    def __init__(
        self,
        margin: int,
        node: str,
        *,
        jobs: Path = slices.JOBS,
        proc: Path = PROC,
        cgroups: Path = CGROUPS,
        uvm: Path = UVM,
        connect: Callable[[], Nvml] = Nvml,
        ask: Ask = slurm.ask,
        log: Log = log_line,
    ) -> None:
        self._folder = jobs
        self._jobs = Jobs(jobs, cgroups, node, ask, log)
        self._processes = Processes(proc, uvm, log)
        self._enforcer = Enforcer(margin, self._processes, log)
        self._neighbours = Neighbours(lambda job: slices.folder_of(job, jobs), log)
        self._connect = connect
        self._heartbeat = Heartbeat(jobs)
        self._log = log
        self._nvml: Nvml | None = None
        self._failures: dict[str, str] = {}
        """The last error of each part of a poll that fails at present."""
        self._stray: set[str] = set()
        self._measured = 0

    def run(self) -> None:
        """Poll once a second, forever."""
        self._try("heartbeat", self._heartbeat.start)
        while True:
            started = time.monotonic()
            self.poll(time.time())
            time.sleep(max(0.0, PAUSE - (time.monotonic() - started)))

    def poll(self, now: float) -> None:
        """Measure, record, enforce and clean up; errors do not end the watchdog.

        After an error of the driver or of a file, it reconnects.
        """
        followed = self._try("follow", lambda: self._jobs.follow(now))
        watched = self._try("watch", lambda: self._watch(now))
        if not watched:
            self._try("close", self._close)
        if followed and watched:
            self._try("heartbeat", self._heartbeat.beat)
        self._try("sweep", lambda: self._jobs.sweep(now))

    def _watch(self, now: float) -> None:
        if self._jobs.watched:
            self._measure(now)
        else:
            self._close()  # unused now, so that the driver can be unloaded

    def _try(self, part: str, work: Callable[[], None]) -> bool:
        """Run a part of a poll; an error is logged once, until the part works again."""
        try:
            work()
        except Exception as error:
            expected = isinstance(error, (NvmlError, OSError))
            text = str(error) if expected else f"{part}: {error!r}"
            if self._failures.get(part) != text:
                self._log(f"cannot watch, retrying: {text}")
            self._failures[part] = text
            return False
        if self._failures.pop(part, ""):
            self._log("watching again")
        return True

    def _measure(self, now: float) -> None:
        """Measure all GPUs, even when one of them fails: the others must stay protected."""
        jobs = self._jobs.watched
        nvml = self._connected()
        uses = {job: Use() for job in jobs}
        since, self._measured = self._measured or int((now - PAUSE) * 1e6), int(now * 1e6)
        failed: dict[str, Exception] = {}
        present: set[int] = set()
        for uuid in {part.uuid for watched in jobs.values() for part in watched.slice.parts}:
            try:
                gpu = self._measure_gpu(nvml, uuid, since, uses)
                self._enforcer.enforce(gpu, jobs, now)
                present |= gpu.sizes.keys()
            except Exception as error:
                failed[uuid] = error
                for watched in jobs.values():
                    watched.forget(uuid)
        if not failed:
            self._enforcer.forget_gone(present)
        self._record(uses, failed.keys(), now)
        if failed:
            raise next(iter(failed.values()))

    def _connected(self) -> Nvml:
        if self._nvml is None:
            try:
                self._nvml = self._connect()
            except NvmlError:
                for watched in self._jobs.watched.values():
                    watched.suspicions.clear()
                raise
        return self._nvml

    def _measure_gpu(self, nvml: Nvml, uuid: str, since: int, uses: dict[int, Use]) -> Gpu:
        busy = nvml.busy(uuid, since)
        job_slices = {
            job: watched.slice
            for job, watched in self._jobs.watched.items()
            if uuid in {part.uuid for part in watched.slice.parts}
        }
        for job in job_slices if busy is not None else ():
            uses[job].busy = uses[job].busy or []
        gpu = Gpu(uuid, nvml.processes(uuid), nvml.used(uuid), {})
        for pid, memory in gpu.sizes.items():
            owner = self._processes.job(pid)
            if owner is None or owner not in uses:
                self._report_stray(pid, owner, uuid, memory)
                continue
            gpu.owners[pid] = owner
            uses[owner].memory.setdefault(uuid, {})[pid] = memory
            if busy is not None:
                uses[owner].busy = [*(uses[owner].busy or []), busy.get(pid, 0.0)]
        by_job = {job: uses[job].memory.get(uuid, {}) for job in job_slices}
        measurement = Measurement(uuid, job_slices, by_job, busy)
        self._try(f"neighbours on {uuid}", lambda: self._neighbours.record(measurement))
        return gpu

    def _record(self, uses: dict[int, Use], failed: Collection[str], now: float) -> None:
        """Write each job's use, unless one of its GPUs could not be measured."""
        jobs = self._jobs.watched
        for job, use in uses.items():
            if any(use.memory.values()):
                jobs[job].last_seen = now
            if not any(part.uuid in failed for part in jobs[job].slice.parts):
                self._try(f"job {job}", partial(self._write, job, jobs[job], use, now))

    def _write(self, job: int, watched: Watched, use: Use, now: float) -> None:
        gpus = len(watched.slice.parts)
        busy = None if use.busy is None else round(min(100.0, sum(use.busy) / gpus), 1)
        usage = {
            "time": round(now, 1),
            "memory": sum(sum(by_pid.values()) for by_pid in use.memory.values()),
            "sm_percent": busy,
            "processes": len({pid for by_pid in use.memory.values() for pid in by_pid}),
            "kills": watched.kills,
        }
        self._neighbours.write(job, watched.slice)
        folder = slices.folder_of(job, self._folder)
        try:
            slices.write_atomically(folder / "usage.json", json.dumps(usage) + "\n")
        except OSError as error:
            if folder.exists():  # unless Epilog was faster
                self._log(f"job {job}: {error}")

    def _close(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def _report_stray(self, pid: int, owner: int | None, uuid: str, memory: int) -> None:
        """Log once that a process holds memory of a GPU that no slice accounts for."""
        mark = self._processes.mark(pid) if owner is not None and memory else ""
        if mark and mark not in self._stray and len(self._stray) < REMEMBERED:
            self._stray.add(mark)
            name, size = self._processes.name(pid), memory >> 20
            self._log(
                f"job {owner}: {name} (PID {pid}) holds {size} MiB of {uuid}, and the job has no "
                "slice here: it is counted for nobody"
            )

"""End processes of jobs that hold more memory of a GPU than their slice."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from portal.node.gpu.watchdog import managed
from portal.node.gpu.watchdog.jobs import Log, Watched
from portal.node.gpu.watchdog.judge import (
    Allocation,
    Dying,
    Suspicion,
    allowance,
    judge,
    shared_twice,
)
from portal.node.gpu.watchdog.processes import Processes

PATIENCE = 2.0
"""Seconds for the mappings of all processes: the most by which they delay a poll."""


@dataclass
class Gpu:
    """The driver's figures of one GPU at one poll."""

    uuid: str
    sizes: dict[int, int]
    """Bytes of every process on the node, by PID; 0 where the driver does not know."""
    used: int | None
    """Bytes in use, including those attributed to no process; None from old drivers."""
    owners: dict[int, int]
    """The watched jobs of processes, by PID."""


@dataclass
class _Limited:
    """A job with a limit on the GPU."""

    watched: Watched
    allocations: list[Allocation]
    memory: int
    most: int
    counted_twice: int

    @property
    def used(self) -> int:
        return sum(allocation.size for allocation in self.allocations) - self.counted_twice


class Enforcer:
    """Ends processes of jobs that exceed their slices, over successive polls."""

    def __init__(self, margin: int, processes: Processes, log: Log) -> None:
        self._margin = margin
        self._processes = processes
        self._log = log
        self._dying = Dying()
        self._unexplained: dict[str, Suspicion] = {}

    def enforce(self, gpu: Gpu, jobs: Mapping[int, Watched], now: float) -> None:
        """End the largest processes of each job until the others fit."""
        hidden = managed.hidden(gpu.used, gpu.sizes)
        limited: dict[int, _Limited] = {}
        for job, watched in jobs.items():
            memory = next((p.memory for p in watched.slice.parts if p.uuid == gpu.uuid), 0)
            if memory:  # 0 is the whole GPU
                listed = [
                    Allocation(pid, self._processes.mark(pid), gpu.sizes[pid])
                    for pid, owner in gpu.owners.items()
                    if owner == job
                ]
                limited[job] = self._limited(gpu, listed, watched, memory)
                if limited[job].used > limited[job].most or hidden > self._margin:
                    living = self._living(listed, watched, now)
                    limited[job] = self._limited(gpu, living, watched, memory)
        for job, limit in limited.items():
            over = f"the job held {limit.used >> 20} MiB of {gpu.uuid}"
            ended = judge(
                limit.allocations,
                limit.most,
                limit.watched.suspicion(gpu.uuid),
                limit.counted_twice,
            )
            self._end(job, limit.watched, ended, f"{over}, its slice is {limit.memory >> 20} MiB")
        self._enforce_managed(gpu, limited, hidden)

    def forget_gone(self, present: set[int]) -> None:
        """Forget processes that the driver no longer lists."""
        if self._dying.since:
            self._dying.forget_gone({self._processes.mark(pid) for pid in present})

    def _limited(
        self, gpu: Gpu, allocations: list[Allocation], watched: Watched, memory: int
    ) -> _Limited:
        sizes = {allocation.pid: allocation.size for allocation in allocations}
        most = memory + allowance(sizes.values(), memory, self._margin)
        counted_twice = shared_twice(sizes, sum(gpu.sizes.values()), gpu.used)
        return _Limited(watched, allocations, memory, most, counted_twice)

    def _living(self, listed: list[Allocation], watched: Watched, now: float) -> list[Allocation]:
        """Return the allocations without those of dying processes, which are about to be freed.

        Called only for jobs over their limit, since every thread of a process has to be read.
        """
        return [
            allocation
            for allocation in listed
            if allocation.mark
            and not (
                (allocation.mark in watched.ended or self._processes.is_dying(allocation.pid))
                and self._dying.excuses(allocation.mark, now)
            )
        ]

    def _enforce_managed(self, gpu: Gpu, limited: Mapping[int, _Limited], hidden: int) -> None:
        """End processes for managed memory that certainly belongs to their job."""
        sizes = self._managed(gpu) if hidden > self._margin else {}
        mapped = {pid: size for pid, size in sizes.items() if size is not None}
        unread = {gpu.owners.get(pid) for pid, size in sizes.items() if size is None}
        by_job: dict[int | None, int] = {}
        for pid, size in mapped.items():
            owner = gpu.owners.get(pid)
            by_job[owner] = by_job.get(owner, 0) + size
        holders = {
            job: managed.Holder(limit.used, limit.most)
            for job, limit in limited.items()
            if unread <= {job}  # the managed memory of all other jobs must be known
        }
        guilty = managed.to_blame(hidden, by_job, holders)
        for job, limit in limited.items():
            suspicion = limit.watched.suspicion(f"{gpu.uuid} managed")
            if job not in guilty:
                suspicion.fits()
                continue
            totals = [
                Allocation(
                    allocation.pid, allocation.mark, allocation.size + mapped.get(allocation.pid, 0)
                )
                for allocation in limit.allocations
            ]
            self._end(
                job,
                limit.watched,
                judge(totals, limit.most, suspicion, limit.counted_twice),
                f"{hidden >> 20} MiB of {gpu.uuid} are managed memory, more than its slice of "
                f"{limit.memory >> 20} MiB is the job's",
            )
        if not unread:
            self._report_unexplained(gpu, hidden - sum(mapped.values()))

    def _managed(self, gpu: Gpu) -> dict[int, int | None]:
        """Return managed memory by PID; None for a process that cannot be read."""
        deadline = time.monotonic() + PATIENCE
        return {
            pid: self._processes.managed(pid) if time.monotonic() < deadline else None
            for pid in gpu.sizes
        }

    def _report_unexplained(self, gpu: Gpu, hidden: int) -> None:
        """Log once that memory belongs to no process, if two successive polls show it."""
        suspicion = self._unexplained.setdefault(gpu.uuid, Suspicion())
        if hidden <= self._margin:
            suspicion.unknown()
            return
        suspicion.score += 1
        if suspicion.score == 2:
            self._log(
                f"{hidden >> 20} MiB of {gpu.uuid} are in use by no process that the driver or the "
                "kernel names; nobody is ended for that"
            )

    def _end(self, job: int, watched: Watched, allocations: list[Allocation], why: str) -> None:
        for allocation in allocations:
            name = self._processes.name(allocation.pid)
            if allocation.mark not in watched.ended and self._processes.end(allocation.pid, job):
                watched.kills += 1
                watched.ended.add(allocation.mark)
                size = allocation.size >> 20
                self._log(f"job {job}: ended {name} (PID {allocation.pid}) with {size} MiB: {why}")

"""Ends processes of jobs that hold more of a GPU than they may."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from portal.node.gpu.watchdog import managed
from portal.node.gpu.watchdog.jobs import Say, Watched
from portal.node.gpu.watchdog.judge import Dying, Held, Suspicion, judge, room, shared_twice
from portal.node.gpu.watchdog.processes import Processes

PATIENCE = 2.0
"""Seconds for the mappings of all processes: the most by which they delay a poll."""


@dataclass
class Gpu:
    """What the driver says of one GPU at one look."""

    uuid: str
    sizes: dict[int, int]
    """Bytes of every process on the node, by PID; 0 where the driver does not know."""
    used: int | None
    """Bytes in use, also those that are in no process's figure; None from old drivers."""
    owners: dict[int, int]
    """The watched jobs of processes, by PID."""


@dataclass
class _Limited:
    """A job with a limit on the GPU."""

    watched: Watched
    living: list[Held]
    memory: int
    most: int
    twice: int

    @property
    def held(self) -> int:
        return sum(one.size for one in self.living) - self.twice


class Enforcer:
    """All that the watchdog knows beside the jobs' own state."""

    def __init__(self, margin: int, processes: Processes, log: Say) -> None:
        self._margin = margin
        self._processes = processes
        self._log = log
        self._dying = Dying()
        self._unexplained: dict[str, Suspicion] = {}

    def enforce(self, gpu: Gpu, jobs: Mapping[int, Watched], now: float) -> None:
        """End the largest processes of each job until the others fit."""
        lost = managed.hidden(gpu.used, gpu.sizes)
        limited: dict[int, _Limited] = {}
        for job, watched in jobs.items():
            memory = next((p.memory for p in watched.slice.parts if p.uuid == gpu.uuid), 0)
            if memory:  # 0 is the whole GPU
                listed = [
                    Held(pid, self._processes.mark(pid), gpu.sizes[pid])
                    for pid, owner in gpu.owners.items()
                    if owner == job
                ]
                limited[job] = self._limited(gpu, listed, watched, memory)
                if limited[job].held > limited[job].most or lost > self._margin:
                    living = self._living(listed, watched, now)
                    limited[job] = self._limited(gpu, living, watched, memory)
        for job, each in limited.items():
            over = f"the job held {each.held >> 20} MiB of {gpu.uuid}"
            ended = judge(each.living, each.most, each.watched.suspicion(gpu.uuid), each.twice)
            self._end(job, each.watched, ended, f"{over}, its slice is {each.memory >> 20} MiB")
        self._enforce_managed(gpu, limited, lost)

    def forget_gone(self, present: set[int]) -> None:
        """Forget processes that the driver no longer lists."""
        if self._dying.since:
            self._dying.forget_gone({self._processes.mark(pid) for pid in present})

    def _limited(self, gpu: Gpu, held: list[Held], watched: Watched, memory: int) -> _Limited:
        sizes = {one.pid: one.size for one in held}
        most = memory + room(sizes.values(), memory, self._margin)
        twice = shared_twice(sizes, sum(gpu.sizes.values()), gpu.used)
        return _Limited(watched, held, memory, most, twice)

    def _living(self, listed: list[Held], watched: Watched, now: float) -> list[Held]:
        """Without the dying, whose memory is as good as free.

        Looked at only where it matters, since each of a process's threads has to be read.
        """
        return [
            one
            for one in listed
            if one.mark
            and not (
                (one.mark in watched.ended or self._processes.is_dying(one.pid))
                and self._dying.excuses(one.mark, now)
            )
        ]

    def _enforce_managed(self, gpu: Gpu, limited: Mapping[int, _Limited], lost: int) -> None:
        """The same for managed memory, where it is certain whose it is."""
        found = self._managed(gpu) if lost > self._margin else {}
        mapped = {pid: size for pid, size in found.items() if size is not None}
        unread = {gpu.owners.get(pid) for pid, size in found.items() if size is None}
        by_job: dict[int | None, int] = {}
        for pid, size in mapped.items():
            owner = gpu.owners.get(pid)
            by_job[owner] = by_job.get(owner, 0) + size
        holders = {
            job: managed.Holder(each.held, each.most)
            for job, each in limited.items()
            if unread <= {job}  # what others may hold beside has to be known
        }
        guilty = managed.to_blame(lost, by_job, holders)
        for job, each in limited.items():
            suspicion = each.watched.suspicion(f"{gpu.uuid} managed")
            if job not in guilty:
                suspicion.fits()
                continue
            both = [
                Held(one.pid, one.mark, one.size + mapped.get(one.pid, 0)) for one in each.living
            ]
            self._end(
                job,
                each.watched,
                judge(both, each.most, suspicion, each.twice),
                f"{lost >> 20} MiB of {gpu.uuid} are managed memory, more than its slice of "
                f"{each.memory >> 20} MiB is the job's",
            )
        if not unread:
            self._report_unexplained(gpu, lost - sum(mapped.values()))

    def _managed(self, gpu: Gpu) -> dict[int, int | None]:
        """Managed memory by PID; None is that of a process which cannot be read."""
        until = time.monotonic() + PATIENCE
        return {
            pid: self._processes.managed(pid) if time.monotonic() < until else None
            for pid in gpu.sizes
        }

    def _report_unexplained(self, gpu: Gpu, lost: int) -> None:
        """Say once that memory is held by nobody, if that is so at two looks in a row."""
        suspicion = self._unexplained.setdefault(gpu.uuid, Suspicion())
        if lost <= self._margin:
            suspicion.unknown()
            return
        suspicion.looks += 1
        if suspicion.looks == 2:
            self._log(
                f"{lost >> 20} MiB of {gpu.uuid} are in use by no process that the driver or the "
                "kernel names; nobody is ended for that"
            )

    def _end(self, job: int, watched: Watched, processes: list[Held], why: str) -> None:
        for one in processes:
            name = self._processes.name(one.pid)
            if one.mark not in watched.ended and self._processes.end(one.pid, job):
                watched.kills += 1
                watched.ended.add(one.mark)
                size = one.size >> 20
                self._log(f"job {job}: ended {name} (PID {one.pid}) with {size} MiB: {why}")

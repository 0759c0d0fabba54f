"""The watchdog: says once a second what each job uses, and ends what takes more than its slice.

The shim inside a session keeps programs from taking too much by accident; this is the fence for
those that go around it. The driver tells what each process of the node holds, whoever asked for it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_IMODE
from typing import TextIO

from portal.gpu import slices, slurm
from portal.gpu.cgroups import CGROUPS, PROC, job_of
from portal.gpu.jobs import Jobs, Say, Watched, say
from portal.gpu.nvml import Nvml, NvmlError
from portal.gpu.prolog import Ask

PAUSE = 1.0


@dataclass
class Use:
    """What a job uses at one look."""

    memory: dict[str, dict[int, int]] = field(default_factory=dict)
    """For each GPU, bytes by PID."""
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
        connect: Callable[[], Nvml] = Nvml,
        ask: Ask = slurm.ask,
        log: Say = say,
    ) -> None:
        self._margin = margin
        self._folder = jobs
        self._jobs = Jobs(jobs, cgroups, node, ask, log)
        self._proc = proc
        self._connect = connect
        self._log = log
        self._nvml: Nvml | None = None
        self._silent = ""
        self._looked = 0

    def run(self) -> None:
        """Look once a second, for ever."""
        while True:
            started = time.monotonic()
            self.look(time.time())
            time.sleep(max(0.0, PAUSE - (time.monotonic() - started)))

    def look(self, now: float) -> None:
        """Measure, write down, end what is too much, clean up. What the driver says is tried
        again at the next look, with a new connection."""
        self._jobs.follow(now)
        try:
            if self._jobs.watched:
                self._measure(now)
                self._hear()
            else:
                self._close()  # nobody needs the driver now: it can be unloaded
        except NvmlError as error:
            self._close()
            self._fall_silent(str(error))
        self._jobs.sweep(now)

    def _measure(self, now: float) -> None:
        """All GPUs, also when one of them does not answer: the others' fence must stand."""
        if self._nvml is None:
            self._nvml = self._connect()
        jobs = self._jobs.watched
        uses = {job: Use() for job in jobs}
        since, self._looked = self._looked or int((now - PAUSE) * 1e6), int(now * 1e6)
        failed: dict[str, NvmlError] = {}
        for uuid in {part.uuid for watched in jobs.values() for part in watched.slice.parts}:
            try:
                self._measure_gpu(self._nvml, uuid, since, uses)
            except NvmlError as error:
                failed[uuid] = error
        for job, use in uses.items():
            if any(use.memory.values()):
                jobs[job].seen = now
            for part in jobs[job].slice.parts:
                self._enforce(job, jobs[job], part, use.memory.get(part.uuid, {}))
            if failed.keys().isdisjoint(part.uuid for part in jobs[job].slice.parts):
                self._write(job, jobs[job], use, now)
        if failed:
            raise next(iter(failed.values()))

    def _measure_gpu(self, nvml: Nvml, uuid: str, since: int, uses: dict[int, Use]) -> None:
        busy = nvml.busy(uuid, since)
        for job, watched in self._jobs.watched.items():
            if busy is not None and uuid in {part.uuid for part in watched.slice.parts}:
                uses[job].busy = uses[job].busy or []
        for pid, memory in nvml.processes(uuid).items():
            owner = self._job_of(pid)
            if owner is None:
                continue
            uses[owner].memory.setdefault(uuid, {})[pid] = memory
            if busy is not None:
                uses[owner].busy = [*(uses[owner].busy or []), busy.get(pid, 0.0)]

    def _job_of(self, pid: int) -> int | None:
        """The watched job that a process is of. By its cgroup alone, which only root changes: a
        user ID may also be one of those that fakeroot lends."""
        job = job_of(pid, self._proc)
        return job if job in self._jobs.watched else None

    def _enforce(
        self, job: int, watched: Watched, part: slices.Part, memory: dict[int, int]
    ) -> None:
        """End the greediest processes until the others fit."""
        most = part.memory + self._margin
        if not part.memory:
            return
        held = {pid: size for pid, size in memory.items() if self._mark(pid) not in watched.ended}
        total = sum(held.values())
        for pid, size in sorted(held.items(), key=lambda item: -item[1]):
            if total <= most:
                break
            mark, name = self._mark(pid), self._name(pid)
            if mark and self._end(pid, job):
                watched.kills += 1
                watched.ended.add(mark)
                self._log(
                    f"job {job}: ended {name} (PID {pid}) with {size >> 20} MiB: the job held "
                    f"{total >> 20} MiB of {part.uuid}, its slice is {part.memory >> 20} MiB"
                )
            total -= size

    def _end(self, pid: int, job: int) -> bool:
        """Kill a process of a job, and never another one that has got its PID meanwhile."""
        try:
            handle = os.pidfd_open(pid)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                return False
            return self._job_of(pid) == job and _kill(pid)  # Linux before 5.3 has nothing better
        try:
            if self._job_of(pid) != job:
                return False
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def _mark(self, pid: int) -> str:
        """PID and start time: what tells a process from a later one; "" when it is gone."""
        try:
            # Behind the name, which may have any character in it.
            stat = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return f"{pid}@{stat[19]}"

    def _name(self, pid: int) -> str:
        try:
            return (self._proc / str(pid) / "comm").read_text().strip()
        except OSError:
            return "a process"

    def _write(self, job: int, watched: Watched, use: Use, now: float) -> None:
        gpus = len(watched.slice.parts)
        busy = None if use.busy is None else round(min(100.0, sum(use.busy) / gpus), 1)
        usage = {
            "time": round(now, 1),
            "memory": sum(sum(held.values()) for held in use.memory.values()),
            "sm_percent": busy,
            "processes": len({pid for held in use.memory.values() for pid in held}),
            "kills": watched.kills,
        }
        folder = slices.folder_of(job, self._folder)
        try:
            slices.write_atomically(folder / "usage.json", json.dumps(usage) + "\n")
        except OSError as error:
            if folder.exists():  # not when Epilog was faster
                self._log(f"job {job}: {error}")

    def _close(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def _fall_silent(self, why: str) -> None:
        """Once, however often it is tried."""
        if self._silent != why:
            self._log(f"cannot watch now, trying again: {why}")
            self._silent = why

    def _hear(self) -> None:
        if self._silent:
            self._log("watching again")
            self._silent = ""


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def lock(jobs: Path = slices.JOBS) -> TextIO | None:
    """Be the only watchdog of this node for as long as the file is open; None when there is one.

    A file that users can open they can lock, so this one lies where they cannot even look. Raises
    OSError.
    """
    folder = jobs.parent / "watch"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / "lock"
    if not _is_ours_alone(folder):
        # Somebody may have it open, and locked: whatever they hold is no longer the lock.
        folder.chmod(0o700)
        file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    (jobs.parent / "watch.lock").unlink(missing_ok=True)  # that of earlier versions
    return os.fdopen(descriptor, "w")


def _is_ours_alone(folder: Path) -> bool:
    """Whether nobody else can enter a folder; raises OSError where it is somebody else's."""
    found = folder.lstat()
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "is not root's", str(folder))
    return S_IMODE(found.st_mode) & 0o077 == 0


def is_running(jobs: Path = slices.JOBS) -> bool:
    """Whether a watchdog holds the lock; raises OSError for who may not look."""
    found = lock(jobs)
    if found is not None:
        found.close()
    return found is None

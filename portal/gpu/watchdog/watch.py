"""The watchdog: records each job's use once a second, and kills processes that exceed its slice.

The shim inside a session prevents programs from exceeding it by accident; the watchdog stops those
that bypass it. The driver reports what each process on the node holds, however it was allocated.
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
from portal.gpu.nvml import Nvml, NvmlError
from portal.gpu.prolog import Ask
from portal.gpu.watchdog.jobs import Jobs, Say, Watched, say
from portal.gpu.watchdog.neighbours import Neighbours, Seen

PAUSE = 1.0


@dataclass
class Use:
    """What a job uses at one poll."""

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
        connect: Callable[[], Nvml] = Nvml,
        ask: Ask = slurm.ask,
        log: Say = say,
    ) -> None:
        self._margin = margin
        self._folder = jobs
        self._jobs = Jobs(jobs, cgroups, node, ask, log)
        self._neighbours = Neighbours(lambda job: slices.folder_of(job, jobs), log)
        self._proc = proc
        self._connect = connect
        self._log = log
        self._nvml: Nvml | None = None
        self._failure = ""
        self._measured = 0

    def run(self) -> None:
        """Poll once a second, forever."""
        while True:
            started = time.monotonic()
            self.poll(time.time())
            time.sleep(max(0.0, PAUSE - (time.monotonic() - started)))

    def poll(self, now: float) -> None:
        """Measure, record, enforce and clean up.

        After an error of the driver or of a file, the next poll uses a new connection.
        """
        self._jobs.follow(now)
        try:
            if self._jobs.watched:
                self._measure(now)
                self._report_recovery()
            else:
                self._close()  # unused now, so that the driver can be unloaded
        except (NvmlError, OSError) as error:
            self._close()
            self._report_failure(str(error))
        self._jobs.sweep(now)

    def _measure(self, now: float) -> None:
        """Measure all GPUs, even when one of them fails: the others must stay protected."""
        if self._nvml is None:
            self._nvml = self._connect()
        jobs = self._jobs.watched
        uses = {job: Use() for job in jobs}
        since, self._measured = self._measured or int((now - PAUSE) * 1e6), int(now * 1e6)
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
                self._neighbours.write(job, jobs[job].slice)
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
        here = {
            job: watched.slice
            for job, watched in self._jobs.watched.items()
            if uuid in {part.uuid for part in watched.slice.parts}
        }
        held = {job: uses[job].memory.get(uuid, {}) for job in here}
        self._neighbours.measured(Seen(uuid, here, held, busy))

    def _job_of(self, pid: int) -> int | None:
        """The watched job of a process, by its cgroup, which only root can change.

        Not by UID, which may be one of the subordinate UIDs of fakeroot.
        """
        job = job_of(pid, self._proc)
        return job if job in self._jobs.watched else None

    def _enforce(
        self, job: int, watched: Watched, part: slices.Part, memory: dict[int, int]
    ) -> None:
        """Kill the largest processes until the others fit."""
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
        """Kill a process of a job, never another one that has reused its PID."""
        try:
            handle = os.pidfd_open(pid)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                return False
            return self._job_of(pid) == job and _kill(pid)  # Linux before 5.3 has no pidfd_open
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
        """PID and start time, which identify a process; "" if it has exited."""
        try:
            # After the name, which may contain any character.
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
            if folder.exists():  # unless Epilog was faster
                self._log(f"job {job}: {error}")

    def _close(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def _report_failure(self, why: str) -> None:
        """Report an error once, even if it is repeated."""
        if self._failure != why:
            self._log(f"cannot watch, retrying: {why}")
            self._failure = why

    def _report_recovery(self) -> None:
        if self._failure:
            self._log("watching again")
            self._failure = ""


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def lock(jobs: Path = slices.JOBS, seconds: float = 0) -> TextIO | None:
    """Lock out other watchdogs of this node while the file is open; None if there is one.

    Tries for so many seconds. The file is in a folder that users cannot enter, since anyone who can
    open it can lock it. Raises OSError.
    """
    until = time.monotonic() + seconds
    while (found := _try_lock(jobs)) is None and time.monotonic() < until:
        time.sleep(0.05)
    return found


def _try_lock(jobs: Path) -> TextIO | None:
    folder = jobs.parent / "watch"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / "lock"
    if not _is_private(folder):
        # A user may hold a lock on it: the file is replaced, so that this lock has no effect.
        folder.chmod(0o700)
        file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    (jobs.parent / "watch.lock").unlink(missing_ok=True)  # the lock of earlier versions
    return os.fdopen(descriptor, "w")


def _is_private(folder: Path) -> bool:
    """Whether only its owner can enter a folder; raises OSError if that is not this user."""
    found = folder.lstat()
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "is not root's", str(folder))
    return S_IMODE(found.st_mode) & 0o077 == 0


def is_running(jobs: Path = slices.JOBS) -> bool:
    """Whether a watchdog holds the lock; raises OSError without permission to check."""
    found = lock(jobs)
    if found is not None:
        found.close()
    return found is None

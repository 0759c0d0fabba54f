"""Extensions of the time limits of running jobs, one at a time for each job."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Literal

from portal.core.cluster.effective_limits import UserPartition, partition_of_job
from portal.core.cluster.extensions import Extensions, extensions
from portal.core.cluster.job_reports import JobReport
from portal.core.interfaces.systems import Clock, Scheduler
from portal.core.units import short_minutes
from portal.errors import Conflict, FieldError, InvalidRequest, OutcomeUnknown, Unavailable
from portal.services.cluster import Cluster

LEASE = timedelta(seconds=120)
"""Maximum duration of one extension's lock: longer than Slurm's answers can take, so that it
expires only after a crash."""
IN_TIME = timedelta(seconds=60)
"""Time after its start in which an extension may change the limit."""
PATIENCE = 3.0
"""Seconds that an extension waits for another one of the same job."""
PAUSE = 0.05
MOST_WAITING = 3
"""Extensions of one job that may wait in one process, since each holds a thread."""
MOST_AT_ONCE = 4
"""Extensions of all jobs in one process: a single user may have many jobs."""
_THREADS = threading.BoundedSemaphore(MOST_AT_ONCE)
LIMITS_UNKNOWN = "Slurm's limits are not known yet. Try again in a minute."

Minutes = int | Literal["max"] | None


class Extender:
    """Extends time limits as far as the job's account, QOS and partition permit its owner.

    One extension of each job runs at a time, across all processes.
    """

    def __init__(self, noun: str, cluster: Cluster, scheduler: Scheduler, clock: Clock) -> None:
        self._noun = noun
        self._cluster = cluster
        self._scheduler = scheduler
        self._clock = clock
        self._waiting: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def alone(
        self,
        name: str,
        claim: Callable[[], datetime | None],
        release: Callable[[datetime], object],
    ) -> Iterator[datetime]:
        """Hold a job's lock; yields the time at which it was taken. Raises Conflict, Unavailable.

        `claim` takes it in the database and returns that time; None if another request holds it.
        """
        with self._lock:
            if self._waiting[name] >= MOST_WAITING:
                raise self._at_once()
            if not _THREADS.acquire(blocking=False):
                raise Unavailable("Many time limits are being extended. Try again in a moment.")
            self._waiting[name] += 1
        try:
            started = self._claim(claim)
            try:
                yield started
            finally:
                release(started)
        finally:
            _THREADS.release()
            with self._lock:
                self._waiting[name] -= 1
                self._waiting += Counter()  # drops zero counts

    def _claim(self, claim: Callable[[], datetime | None]) -> datetime:
        deadline = time.monotonic() + PATIENCE
        while True:
            if started := claim():
                return started
            if time.monotonic() > deadline:
                raise self._at_once()
            time.sleep(PAUSE)

    def _at_once(self) -> Conflict:
        return Conflict(
            f"This {self._noun} is being extended right now. Check its time limit, then try again."
        )

    def extend(
        self,
        report: JobReport,
        minutes: Minutes,
        default: int,
        started: datetime,
        limit_now: Callable[[], int | None],
    ) -> int:
        """Extend by `minutes`, by as much as permitted ("max"), or by the default if possible.

        `limit_now` reads the limit from Slurm. Returns the minutes added. Raises Conflict,
        InvalidRequest, Unavailable.
        """
        if report.time_limit is None:
            raise Conflict(f"This {self._noun} has no time limit.")
        group = self._group(report)
        room = room_in(group, report.time_limit)
        added = self._minutes_to_add(minutes, room, default)
        if added < 1 or (room is not None and added > room):
            raise InvalidRequest([FieldError("minutes", _too_much(group, room or 0))])
        if self._clock() - started > IN_TIME:
            raise Unavailable("Slurm took too long, so nothing was changed. Try again in a minute.")
        limit = report.time_limit + added
        try:
            self._scheduler.extend(report.job_id, limit)
        except OutcomeUnknown:
            # Whether the command took effect is visible in Slurm.
            if limit_now() != limit:
                raise
        return added

    def extensions(self, report: JobReport) -> Extensions:
        """The extensions that are possible now; never raises."""
        if report.time_limit is None:
            return Extensions()
        try:
            group = self._group(report)
        except (Conflict, Unavailable) as error:
            return Extensions(why=error.text)
        return extensions(room_in(group, report.time_limit), group.too_much("time"))

    def _group(self, report: JobReport) -> UserPartition:
        """The bounds of the job itself: its submitter may have chosen any account and QOS."""
        cluster = self._cluster.look()
        limits = cluster.limits
        partition = next((p for p in cluster.partitions if p.name == report.partition), None)
        if limits is None or partition is None:
            raise Unavailable(LIMITS_UNKNOWN)
        user_partition = partition_of_job(report.user, partition, report, limits)
        if user_partition is None:
            raise Conflict(
                f"Slurm has this {self._noun} with the QOS {report.qos or '(none)'} and the "
                f"account {report.account or '(none)'} in {report.partition}. Its owner is not "
                "known to be allowed to use them, so it cannot be extended. Ask the administrators."
            )
        return user_partition

    def _minutes_to_add(self, minutes: Minutes, room: int | None, default: int) -> int:
        if minutes is None:
            return default if room is None else min(default, max(room, 0))
        if isinstance(minutes, int):
            return minutes
        if room is None:
            text = f"nothing limits the time of this {self._noun}; say how many minutes"
            raise InvalidRequest([FieldError("minutes", text)])
        return room


def room_in(group: UserPartition, limit: int) -> int | None:
    """Minutes between a time limit and the most that its owner may request; None if unlimited."""
    return None if group.max_minutes is None else group.max_minutes - limit


def _too_much(group: UserPartition, room: int) -> str:
    limit = group.too_much("time")
    remainder = f"it can get {short_minutes(room)} more" if room > 0 else "it has them already"
    return f"{limit}; {remainder}"

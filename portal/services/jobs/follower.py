"""Follows Slurm's jobs in the worker: the queue, the owners' texts, ends and history.

The reconciler polls the queue and passes it on (`note_queue`). Slower tasks run in separate
threads, so that sessions are not delayed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from portal.core.interfaces.jobs import MOST_NAMED, JobScheduler
from portal.core.interfaces.systems import Clock
from portal.core.jobs.job import Job
from portal.errors import OutcomeUnknown, Unavailable
from portal.store.jobs.store import JobStore

log = logging.getLogger(__name__)

BATCH = 2000
"""Jobs written in one transaction, so that other writers wait briefly."""
PAUSE = 0.15
"""Seconds between two such transactions. SQLite gives its lock to whoever asks while it is free,
and those who wait ask ten times a second: without a pause a log-in waits until all are stored."""
TEXTS_AT_ONCE = 20_000
"""Jobs whose texts one query reads: Slurm reads its whole queue for any number."""
ONLY_NAMED = timedelta(hours=1)
"""How long no more than MOST_NAMED are read at once after the texts of all jobs were too large, as
those of 100,000 with long paths are: the next query for all would fail as well."""
ENDS_AT_ONCE = 1000
"""Jobs per query of accounting."""
GAP = timedelta(seconds=60)
"""Longest time without a poll; after a longer one jobs may have been missed: read accounting."""
SWEEP = timedelta(minutes=10)
"""Interval of reading all ends from accounting, even without a gap: Slurm forgets ended jobs after
MinJobAge, which may be shorter than the time between two polls."""
SLICE, SHORTEST_SLICE = timedelta(hours=12), timedelta(minutes=1)
"""Time span of one query of history; shorter if the answer is too large."""
TIME_BUDGET = timedelta(seconds=60)
"""Then what remains to be read or deleted is left to the next call: the worker must not seem to
hang."""
OVERLAP = timedelta(minutes=5)
"""Tolerated difference between Slurm's clock and the portal's."""

Item = TypeVar("Item")


class JobFollower:
    """The worker's tasks for the Jobs page. Each method is called by one thread only."""

    def __init__(
        self,
        *,
        store: JobStore,
        scheduler: JobScheduler,
        clock: Clock,
        history: timedelta,
        retention: timedelta,
        listed_tasks: timedelta,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._clock = clock
        self._history = history
        self._retention = retention
        self._listed_tasks = listed_tasks
        self._latest: tuple[Mapping[str, Job], datetime] | None = None
        self._stored: Mapping[str, Job] | None = None
        self._last_poll: datetime | None = None
        """When the queue was last stored."""
        self._until: datetime | None = None
        """End of the span to read from accounting; None: nothing to read."""
        self._swept: datetime | None = None
        """The end of the last gap or sweep."""
        self._slice = SLICE
        self._texts_at_once = TEXTS_AT_ONCE
        self._only_named: datetime | None = None
        """Until when no query is for the texts of all jobs."""
        self._lock = threading.Lock()

    # The queue

    def note_queue(self, queue: Mapping[str, Job], polled: datetime) -> None:
        """Pass a poll of the queue to `follow`; unchanged jobs are the same objects."""
        self._latest = (queue, polled)

    def follow(self) -> None:
        """Store the changes since the last stored poll."""
        latest = self._latest
        if latest is None or latest[0] is self._stored:
            return
        queue, polled = latest
        previous: Mapping[str, Job] = self._stored or {}
        before = previous.keys() if self._stored is not None else self._store.live_ids()
        changed = [job for job_id, job in queue.items() if previous.get(job_id) is not job]
        # In squeue's order, by priority, each transaction would write to all pages of the indexes.
        changed.sort(key=lambda job: int(job.id))
        _in_batches(changed, lambda jobs: self._store.save(jobs, polled))
        left = sorted((job_id for job_id in before if job_id not in queue), key=int)
        _in_batches(left, lambda ids: self._store.leave(ids, polled))
        self._stored = queue
        self._note_gap(polled)

    def _note_gap(self, polled: datetime) -> None:
        """Request a read of accounting per SWEEP, and after a gap, or if the clock was set back."""
        last, swept = self._last_poll, self._swept
        self._last_poll = polled
        gap = last is None or not polled - GAP <= last <= polled
        if gap or swept is None or polled - swept > SWEEP:
            self._swept = polled
            with self._lock:
                self._until = polled

    def read_texts(self) -> None:
        """Read the owners' texts of new jobs; raises Unavailable."""
        now = self._clock()
        most = TEXTS_AT_ONCE
        if self._only_named is not None and now < self._only_named:
            most = MOST_NAMED
        ids = self._store.without_texts(min(self._texts_at_once, most))
        if not ids:
            return
        try:
            texts = self._scheduler.texts(ids)
        except OutcomeUnknown:  # the answer may have been too large: texts have any length
            if len(ids) > MOST_NAMED:
                self._only_named = now + ONLY_NAMED
            else:
                self._texts_at_once = max(len(ids) // 4, 1)
            raise
        self._texts_at_once = min(self._texts_at_once * 2, TEXTS_AT_ONCE)
        numbers = sorted(texts, key=int)
        _in_batches(numbers, lambda ids: self._store.save_texts({id: texts[id] for id in ids}))

    # Accounting

    def settle(self) -> None:
        """Read from accounting how jobs ended, until TIME_BUDGET is spent; raises Unavailable."""
        started = self._clock()
        while self._settle_some(started) == ENDS_AT_ONCE:  # an array has ended
            if self._clock() - started > TIME_BUDGET:
                break

    def _settle_some(self, now: datetime) -> int:
        """Settle the ends that are due; returns their number."""
        ids = [job.id for job in self._store.unsettled(now, ENDS_AT_ONCE)]
        if not ids:
            return 0
        reports = self._scheduler.ended(ids)
        ended = {job_id: job for job_id, job in reports.items() if job.report.state.over}
        self._store.settle(ended.values())
        # Also those of which accounting has only an earlier run.
        self._store.postpone(ids, now)
        return len(ids)

    def catch_up(self) -> None:
        """Read the jobs that ended since accounting was last read, in slices, until the gap is
        filled or TIME_BUDGET is spent; raises Unavailable.
        """
        started = self._clock()
        while self._until is not None and self._clock() - started < TIME_BUDGET:
            until = self._until
            oldest = until - self._history
            # The portal's clock may have been ahead when it was read.
            start = min(max(self._store.known_until() or oldest, oldest), until)
            end = min(start + self._slice, until)
            if self._fill(start, end) and end == until:
                with self._lock:  # a new gap may have been noted in the meantime
                    self._until = None if self._until == until else self._until

    def _fill(self, begin: datetime, end: datetime) -> bool:
        """Store the jobs that ended in a time span; False if the answer was too large."""
        try:
            jobs = self._scheduler.history(begin - OVERLAP, end)
        except Unavailable:
            if self._slice <= SHORTEST_SLICE:  # it is down: the span cannot be the cause
                raise
            self._slice = max(self._slice / 4, SHORTEST_SLICE)
            return False
        ended = [job for job in jobs if job.report.state.over and job.report.end is not None]
        _in_batches(ended, self._store.settle)
        self._store.set_known_until(end)
        self._slice = min(self._slice * 4, SLICE)
        return True

    def forget(self) -> None:
        """Delete jobs that ended long ago, and count old tasks of arrays, for TIME_BUDGET."""
        now = self._clock()
        self._repeat(self._store.delete_ended, now - self._retention, now)
        if known_until := self._store.known_until():
            # A task whose end accounting reports again, as after a long gap, has a row again: it
            # would be counted twice.
            before = min(now - self._listed_tasks, known_until - OVERLAP)
            self._repeat(self._store.count_tasks, before, now)

    def _repeat(self, work: Callable[[datetime], int], before: datetime, started: datetime) -> None:
        """Repeat work on rows from before a time, until none is left or TIME_BUDGET is spent."""
        while work(before) and self._clock() - started < TIME_BUDGET:
            time.sleep(PAUSE)


def _in_batches(items: Sequence[Item], store: Callable[[Sequence[Item]], object]) -> None:
    """Store items, each BATCH of them in a transaction."""
    for start in range(0, len(items), BATCH):
        if start:
            time.sleep(PAUSE)
        store(items[start : start + BATCH])

"""Follows Slurm's jobs in the worker: the queue, what the owners wrote, ends and history.

The poll of the queue is the reconciler's, which leaves what it has read here. Everything that takes
longer happens in threads of its own, so that sessions are not delayed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

from portal.core.interfaces.jobs import JobScheduler
from portal.core.interfaces.systems import Clock
from portal.core.jobs.job import Job
from portal.errors import Unavailable
from portal.store.jobs.store import JobStore

log = logging.getLogger(__name__)

PIECE = 1000
"""Jobs written in one transaction, so that other writers wait shortly."""
TEXTS_AT_ONCE = 2000
"""Jobs of which the texts are read by one query: Slurm reads its whole queue for any number."""
ENDS_AT_ONCE = 200
"""Jobs that accounting is asked about by one query."""
GAP = timedelta(seconds=60)
"""Without a look at the queue for so long, jobs may have come and gone: accounting is asked."""
SWEEP = timedelta(minutes=10)
"""Between two questions of accounting about all that ended, without any gap: Slurm forgets jobs
that are over after MinJobAge, which may be shorter than the time between two polls."""
SLICE, SHORTEST_SLICE = timedelta(hours=12), timedelta(minutes=1)
"""Span of time of one question about history; a shorter one if the answer is too large."""
AT_ONCE = timedelta(seconds=60)
"""After so long, the rest of a gap is left to the next call: the worker must not seem to hang."""
OVERLAP = timedelta(minutes=5)
"""Tolerated difference between Slurm's clock and the portal's."""


class JobFollower:
    """What the worker does for the Jobs page. Each method is called by one thread only."""

    def __init__(
        self,
        *,
        store: JobStore,
        scheduler: JobScheduler,
        clock: Clock,
        history: timedelta,
        kept: timedelta,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._clock = clock
        self._history = history
        self._kept = kept
        self._latest: tuple[Mapping[str, Job], datetime] | None = None
        self._known: Mapping[str, Job] | None = None
        self._seen: datetime | None = None
        """When the queue was last stored."""
        self._until: datetime | None = None
        """The end of the span that accounting is to be asked about; None: there is none."""
        self._swept: datetime | None = None
        """The end of the last gap or sweep."""
        self._slice = SLICE
        self._texts_at_once = TEXTS_AT_ONCE
        self._lock = threading.Lock()

    # The queue

    def note_queue(self, queue: Mapping[str, Job], asked: datetime) -> None:
        """Leave a poll of the queue for `follow`; jobs that did not change are the same objects."""
        self._latest = (queue, asked)

    def follow(self) -> None:
        """Store what changed since the last poll that was stored."""
        latest = self._latest
        if latest is None or latest[0] is self._known:
            return
        queue, asked = latest
        known: Mapping[str, Job] = self._known or {}
        before = known.keys() if self._known is not None else self._store.live_ids()
        changed = [job for job_id, job in queue.items() if known.get(job_id) is not job]
        for start in range(0, len(changed), PIECE):
            self._store.save(changed[start : start + PIECE], asked)
        if left := [job_id for job_id in before if job_id not in queue]:
            self._store.leave(left, asked)
        self._known = queue
        self._remember(asked)

    def _remember(self, asked: datetime) -> None:
        """Have accounting asked once in a while, and after a gap: also when a clock was set."""
        seen, swept = self._seen, self._swept
        self._seen = asked
        gap = seen is None or not asked - GAP <= seen <= asked
        if gap or swept is None or asked - swept > SWEEP:
            self._swept = asked
            with self._lock:
                self._until = asked

    def read_texts(self) -> None:
        """Read what the owners of new jobs wrote; raises Unavailable."""
        wanted = self._store.without_texts(self._texts_at_once)
        if not wanted:
            return
        try:
            found = self._scheduler.texts(wanted)
        except Unavailable:  # the answer may have been too large: names are as long as users like
            self._texts_at_once = max(self._texts_at_once // 4, 1)
            raise
        self._texts_at_once = min(self._texts_at_once * 2, TEXTS_AT_ONCE)
        self._store.save_texts(found)

    # Accounting

    def settle(self) -> None:
        """Ask accounting how jobs ended; raises Unavailable."""
        now = self._clock()
        wanted = [job.id for job in self._store.unsettled(now, ENDS_AT_ONCE)]
        if not wanted:
            return
        found = self._scheduler.ended(wanted)
        over = {job_id: job for job_id, job in found.items() if job.report.state.over}
        self._store.settle(over.values())
        # Also those of which accounting has an earlier run only: the others are not asked about.
        self._store.postpone(wanted, now)

    def catch_up(self) -> None:
        """Read what ended since accounting was last asked, in slices, until the gap is filled or
        time is up; raises Unavailable."""
        called = self._clock()
        while self._until is not None and self._clock() - called < AT_ONCE:
            until = self._until
            oldest = until - self._history
            # The portal's clock may have been ahead when it was read.
            begun = min(max(self._store.known_until() or oldest, oldest), until)
            end = min(begun + self._slice, until)
            if self._fill(begun, end) and end == until:
                with self._lock:  # a new gap may have been seen in the meantime
                    self._until = None if self._until == until else self._until

    def _fill(self, begun: datetime, end: datetime) -> bool:
        """Store the jobs that were over in a span of time; False if that was too much at once."""
        try:
            jobs = self._scheduler.history(begun - OVERLAP, end)
        except Unavailable:
            if self._slice <= SHORTEST_SLICE:  # it is down, rather than asked for too much
                raise
            self._slice = max(self._slice / 4, SHORTEST_SLICE)
            return False
        over = [job for job in jobs if job.report.state.over and job.report.end is not None]
        for start in range(0, len(over), PIECE):
            self._store.settle(over[start : start + PIECE])
        self._store.set_known_until(end)
        self._slice = min(self._slice * 4, SLICE)
        return True

    def forget(self) -> None:
        """Delete jobs that ended long ago."""
        while self._store.delete_ended(self._clock() - self._kept):
            pass

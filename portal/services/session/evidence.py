"""Evidence for the adoption of sessions: Slurm's reports of jobs, and proofs in owners' homes.

Both are cached: anyone may call at any rate with the id of any job in the queue. After the loss of
a database the runners of all sessions call, so one squeue reports the jobs of many sessions.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from portal.core.cluster.job_reports import JobReport
from portal.core.interfaces.systems import Clock, Scheduler, UserFiles
from portal.core.jobs.job import JobTab
from portal.core.session_job.adoption import MAX_LIVE_SESSIONS, MAX_PROOF, PROOF, earliest_job
from portal.errors import Unavailable
from portal.store.jobs.store import JobStore

EVIDENCE_LIFETIME = timedelta(seconds=5)
"""How long Slurm's answers and owners' files are used for later calls."""
FORGOTTEN_AFTER = timedelta(minutes=1)
"""Age of Slurm's answers that nobody can be waiting for any more."""
NAMES_AT_ONCE = 500
"""Names in one squeue, which compares the names of all jobs in the queue with each of them."""
Key = TypeVar("Key")
Value = TypeVar("Value")


class Evidence:
    """The job with a session's name, and the proof in its owner's home."""

    def __init__(
        self, *, jobs: JobStore, scheduler: Scheduler, files: UserFiles, clock: Clock
    ) -> None:
        self._jobs = jobs
        self._scheduler = scheduler
        self._files = files
        self._clock = clock
        self._lock = threading.Lock()
        """Held during a query, so that those who wait for it use its answer."""
        self._failed: tuple[datetime, str] | None = None
        """When the last query failed, and why."""
        self._reports: dict[str, tuple[datetime, JobReport | None]] = {}
        """The earliest job by name, with the time when the answer arrived."""
        self._proofs: dict[tuple[str, str], tuple[datetime, str]] = {}
        """Proofs by owner and session."""

    def job(self, session: str, tab: JobTab) -> JobReport | None:
        """The earliest live job of this name.

        By an answer of Slurm's that arrived after this call, or less than EVIDENCE_LIFETIME before.
        A query is also for the jobs on this tab that may be other lost sessions. A name that it did
        not include, as of a job that has started since, causes another one.
        """
        called = self._clock()
        with self._lock:
            if self._failed and self._failed[0] > called:  # each would wait as long again
                raise Unavailable(self._failed[1])
            if not self._is_known(session, called):
                others = islice(self._others(session, tab, called), NAMES_AT_ONCE - 1)
                self._query([session, *others])
            return self._reports[session][1]

    def _is_known(self, session: str, called: datetime) -> bool:
        """Whether an answer is new enough for a call at this time, however long that has waited."""
        at, _ = self._reports.get(session, (None, None))
        return at is not None and called - at < EVIDENCE_LIFETIME

    def _others(self, session: str, tab: JobTab, called: datetime) -> Iterator[str]:
        """Names of jobs that may be lost sessions, and whose reports are not known."""
        for job in self._jobs.without_session(MAX_LIVE_SESSIONS, tab):
            name = job.texts.name
            if name != session and not self._is_known(name, called):
                yield name

    def _query(self, names: Collection[str]) -> None:
        try:
            reports = self._scheduler.named(names)
        except Unavailable as error:
            self._failed = self._clock(), error.text
            raise
        now = self._clock()
        _forget(self._reports, now, FORGOTTEN_AFTER)
        self._reports |= {name: (now, earliest_job(reports.get(name, ()))) for name in names}

    def proof(self, owner: str, session: str) -> str:
        """What the owner's file says, read as the owner within EVIDENCE_LIFETIME."""
        now, key = self._clock(), (owner, session)
        _forget(self._proofs, now, EVIDENCE_LIFETIME)
        if cached := self._proofs.get(key):
            return cached[1]
        data = self._files.session_file(owner, session, PROOF, MAX_PROOF)
        proof = data.decode("ascii", "replace").strip()
        self._proofs[key] = now, proof
        return proof


def _forget(cache: dict[Key, tuple[datetime, Value]], now: datetime, after: timedelta) -> None:
    """Remove what is older than `after`; other threads may use the cache."""
    for key, (at, _) in list(cache.items()):
        if now - at >= after:
            cache.pop(key, None)

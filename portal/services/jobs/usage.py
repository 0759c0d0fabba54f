"""What jobs use, asked of Slurm only while somebody looks, and once for all who do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from portal.core.auth.person import Person
from portal.core.interfaces.jobs import JobMeter
from portal.core.interfaces.systems import Clock
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.usage import JobUsage, ended_usage, is_due, live_usage, usage_of
from portal.errors import Unavailable
from portal.store.jobs.pages import JobPageStore


class JobUse:
    """Asks Slurm and stores the answers."""

    def __init__(
        self,
        get_job: Callable[[Person, str], Job],
        store: JobPageStore,
        meter: JobMeter,
        clock: Clock,
        kept: timedelta,
    ) -> None:
        self._get_job = get_job
        self._store = store
        self._meter = meter
        self._clock = clock
        self._kept = kept

    def known(self, job: Job) -> JobUsage | None:
        """What Slurm last told of the job's present or last run; asks nobody."""
        return usage_of(job, self._store.usage(job.id))

    def look(self, person: Person, shown_id: str) -> JobUsage | None:
        """The same, but Slurm is asked if nobody else has asked lately; raises NotFound."""
        job = self._get_job(person, shown_id)
        known, now = self.known(job), self._clock()
        every = is_due(job, known)
        if every is None or not self._store.claim_usage(job.id, now, now - every):
            return known
        usage = self._ask(job, known)
        if usage is not None:
            self._store.save_usage(job.id, usage)
        return usage or known

    def _ask(self, job: Job, known: JobUsage | None) -> JobUsage | None:
        """What Slurm says now; with the reason if it does not answer."""
        now = self._clock()
        try:
            if job.tab is JobTab.ENDED:
                ended = self._meter.ended(job)
                return ended_usage(job, ended, now) if ended else None
            steps = self._meter.running(job)
            return live_usage(job, steps, self._clock(), known) if steps else None
        except Unavailable as error:
            usage = known or JobUsage(at=now, start=job.report.start)
            return replace(usage, problem=error.text)

    def forget(self) -> None:
        """Delete what was stored about jobs at which nobody has looked for long."""
        self._store.forget(self._clock() - self._kept)

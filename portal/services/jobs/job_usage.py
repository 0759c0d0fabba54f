"""Resource use of jobs, read from Slurm only for open pages, once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from portal.core.auth.person import Person
from portal.core.interfaces.jobs import JobMeter
from portal.core.interfaces.systems import Clock
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.job_usage import JobUsage, ended_usage, is_due, live_usage, usage_of
from portal.errors import Unavailable
from portal.store.jobs.pages import JobPageStore


class JobUse:
    """Reads the use of jobs from Slurm and stores it."""

    def __init__(
        self,
        get_job: Callable[[Person, str], Job],
        store: JobPageStore,
        meter: JobMeter,
        clock: Clock,
        retention: timedelta,
    ) -> None:
        self._get_job = get_job
        self._store = store
        self._meter = meter
        self._clock = clock
        self._retention = retention

    def stored(self, job: Job) -> JobUsage | None:
        """The stored use of the job's current or last run; does not ask Slurm."""
        return usage_of(job, self._store.usage(job.id))

    def refresh(self, person: Person, shown_id: str) -> JobUsage | None:
        """The use, read from Slurm if the stored one is due for that; raises NotFound."""
        job = self._get_job(person, shown_id)
        stored, now = self.stored(job), self._clock()
        interval = is_due(job, stored)
        if interval is None or not self._store.claim_usage(job.id, now, now - interval):
            return stored
        usage = self._ask(job, stored)
        if usage is not None:
            self._store.save_usage(job.id, usage)
        return usage or stored

    def _ask(self, job: Job, stored: JobUsage | None) -> JobUsage | None:
        """The use as Slurm reports it now; with the reason if it does not answer."""
        now = self._clock()
        try:
            if job.tab is JobTab.ENDED:
                ended = self._meter.ended(job)
                return ended_usage(job, ended, now) if ended else None
            steps = self._meter.running(job)
            return live_usage(job, steps, self._clock(), stored) if steps else None
        except Unavailable as error:
            usage = stored or JobUsage(at=now, start=job.report.start)
            return replace(usage, problem=error.text)

    def forget(self) -> None:
        """Delete the stored use of jobs whose pages have not been open for long."""
        self._store.forget(self._clock() - self._retention)

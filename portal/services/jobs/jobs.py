"""Reads Slurm's jobs for pages and API, and acts on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from portal.core.auth.person import Person
from portal.core.jobs.actions import JobAction, JobOutcome
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.query import JobPage, JobQuery
from portal.core.session.pending_reasons import Reason


class Jobs:
    """The jobs that a user may see, and what can be done to them."""

    # Reading

    def get(self, person: Person, shown_id: str) -> Job:
        """The job, if this user may see it; else NotFound, whether or not it exists."""
        raise NotImplementedError

    def get_many(self, person: Person, ids: Iterable[str]) -> list[Job]:
        """These jobs, by record or array, if this user may see all of them; else NotFound."""
        raise NotImplementedError

    def query(self, person: Person, query: JobQuery) -> JobPage:
        """One page of the jobs that this user may see."""
        raise NotImplementedError

    def counts(self, person: Person, query: JobQuery) -> dict[JobTab, int]:
        """Number of jobs on each tab of this user's page that match the other filters."""
        raise NotImplementedError

    def owners(self, person: Person) -> list[str]:
        """Owners by which this user can filter; [] for users who see only their own jobs."""
        raise NotImplementedError

    def reason(self, job: Job) -> Reason | None:
        """Why a job waits; None if it does not."""
        raise NotImplementedError

    def end_text(self, job: Job) -> str:
        """How it ended, in plain words; "" while it lives."""
        raise NotImplementedError

    def ahead(self, job: Job) -> int | None:
        """Number of jobs ahead of a pending one; None if its place in the queue does not matter."""
        raise NotImplementedError

    # Acting

    def act(self, person: Person, action: JobAction, ids: Iterable[str]) -> list[JobOutcome]:
        """Do this to all of these jobs, or arrays; what became of each, in this order.

        Raises NotFound unless the user may see all of them, InvalidRequest for too many.
        """
        raise NotImplementedError

    def extend(self, person: Person, shown_id: str, minutes: int | Literal["max"] | None) -> Job:
        """Extend a running job; None adds the site's default. Raises Conflict, InvalidRequest."""
        raise NotImplementedError

"""Interfaces to Slurm's jobs, and to the store of jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from portal.core.cluster.queue import QueuePart
from portal.core.jobs.actions import JobAction
from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.query import JobPage, JobQuery


class JobStore(Protocol):
    """All jobs that Slurm has told of; the worker writes them. Every method is one transaction."""

    def save(self, changed: Iterable[Job], now: datetime) -> None:
        """Store what the queue says of these jobs; what accounting told of an end is kept."""
        ...

    def save_texts(self, texts: Mapping[str, JobTexts]) -> None:
        """Store the texts of jobs, by number; jobs of sessions are recognised by their names."""
        ...

    def without_session(self, each: int) -> list[Job]:
        """Pending jobs of which no session is known, and whose names could be sessions' ids.

        At most `each` of one owner, the first submitted ones; without texts but the name.
        """
        ...

    def link_sessions(self) -> None:
        """Mark the live jobs of sessions that were not known when the jobs' texts were stored."""
        ...

    def without_texts(self, limit: int) -> list[str]:
        """Numbers of jobs in the queue whose texts are not known, newest first."""
        ...

    def leave(self, ids: Collection[str], now: datetime) -> None:
        """Mark jobs that the queue no longer has; accounting says how they ended."""
        ...

    def unsettled(self, now: datetime, limit: int) -> list[Job]:
        """Jobs whose end accounting is to be asked about, the longest due first."""
        ...

    def settle(self, ended: Iterable[Job]) -> None:
        """Store what accounting says of jobs that are over; texts that are known are kept."""
        ...

    def postpone(self, ids: Collection[str], now: datetime) -> None:
        """Accounting does not know the end of these jobs: it is asked again later, ever more
        seldom. Those that the queue lacks are gone from now on."""
        ...

    def note_cancelled(self, ids: Collection[str], by: str) -> None:
        """Store who cancelled jobs, by the numbers of their records, to explain their ends."""
        ...

    def extended(self, job_id: str, limit: int | None, deadline: datetime | None) -> None:
        """Store a running job's new limit, in minutes; nothing if it does not run any more."""
        ...

    def live_ids(self) -> set[str]:
        """The numbers of all jobs that the queue had last and of which it was to tell more, for a
        worker that starts."""
        ...

    def known_until(self) -> datetime | None:
        """The time until which accounting has been asked for all that ended; None at first."""
        ...

    def set_known_until(self, moment: datetime) -> None:
        """Store that time."""
        ...

    def delete_ended(self, before: datetime) -> int:
        """Delete jobs that ended, or were gone, before a time; returns how many."""
        ...

    def query(self, query: JobQuery, now: datetime) -> JobPage:
        """One page of the list."""
        ...

    def counts(self, query: JobQuery, now: datetime) -> dict[JobTab, int]:
        """Number of rows on each tab that match all filters but the tab and the state."""
        ...

    def queued(self, part: QueuePart) -> int:
        """How many jobs wait or run in this part of the queue, for MaxSubmitJobs and its like.

        Every task of an array counts. The queue as last polled: jobs that were submitted in the
        last seconds are missing, and those that ended in them are counted.
        """
        ...

    def get(self, shown_id: str) -> Job | None:
        """A job by its number as Slurm's commands show it: 123, 123_4 or 123+1."""
        ...

    def get_many(self, ids: Collection[str]) -> list[Job]:
        """Jobs by the numbers of their records or of their arrays, without texts but the name.

        Of an array: its tasks that are not over, or else one of them.
        """
        ...

    def ahead(self, jobs: Collection[Job]) -> dict[str, int]:
        """Number of jobs ahead of each pending one whose place in the queue matters, by number."""
        ...

    def owners(self) -> list[str]:
        """Everybody who has jobs here."""
        ...

    def claim(self, job_id: str, now: datetime, lease: timedelta) -> bool:
        """Take a job's lock for an extension; False if it is taken, and not longer than this."""
        ...

    def release_claim(self, job_id: str, begun: datetime) -> None:
        """Give back the lock that was taken at this time."""
        ...


class JobScheduler(Protocol):
    """Slurm, for jobs of all users. Methods raise Unavailable when Slurm does not answer."""

    def find(self, job_id: str) -> Job | None:
        """The current state of a job in Slurm's memory."""
        ...

    def texts(self, job_ids: Collection[str]) -> dict[str, JobTexts]:
        """Texts of these jobs' owners, by number; without jobs that left the queue."""
        ...

    def ended(self, job_ids: Collection[str]) -> dict[str, Job]:
        """Accounting's records of these jobs, by number; without unknown ones."""
        ...

    def history(self, since: datetime, until: datetime) -> list[Job]:
        """Accounting's records of all jobs of all users that ended in a span of time."""
        ...

    def act(self, user: str, action: JobAction, targets: Sequence[str]) -> dict[str, str]:
        """Hold, release or requeue a user's jobs, arrays or tasks, as that user.

        Returns "" for each target that Slurm accepted, else the reason for its refusal.
        """
        ...

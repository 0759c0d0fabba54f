"""Interface to the store of Slurm's jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Protocol

from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.query import JobPage, JobQuery


class JobStore(Protocol):
    """All jobs that Slurm has told of; the worker writes them. Every method is one transaction."""

    def save(self, changed: Iterable[Job]) -> None:
        """Store what the queue or accounting says of these jobs; texts that are known are kept."""
        ...

    def save_texts(self, texts: Mapping[str, JobTexts]) -> None:
        """Store the texts of jobs, by number."""
        ...

    def leave(self, ids: Collection[str], now: datetime) -> None:
        """Mark jobs that the queue no longer has; accounting says how they ended."""
        ...

    def unsettled(self, limit: int) -> list[Job]:
        """Jobs whose end accounting has not told yet, those that left longest ago first."""
        ...

    def live_ids(self) -> set[str]:
        """The numbers of all jobs that have not ended, for a worker that starts."""
        ...

    def delete_ended(self, before: datetime) -> int:
        """Delete jobs that ended before a time; returns how many."""
        ...

    def query(self, query: JobQuery, now: datetime) -> JobPage:
        """One page of the list."""
        ...

    def counts(self, query: JobQuery, now: datetime) -> dict[JobTab, int]:
        """Number of jobs on each tab that match all filters but the tab and the state."""
        ...

    def get(self, shown_id: str) -> Job | None:
        """A job by its number as Slurm's commands show it: 123, 123_4 or 123+1."""
        ...

    def get_many(self, ids: Collection[str]) -> list[Job]:
        """Jobs by the numbers of their records, or of their arrays (then all of its tasks)."""
        ...

    def ahead(self, job: Job) -> int | None:
        """Number of jobs ahead of a pending one; None if its place in the queue does not matter."""
        ...

    def owners(self) -> list[str]:
        """Everybody who has jobs here."""
        ...

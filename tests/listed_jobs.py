"""Jobs as the pages see them: rows in the real tables, without Slurm behind them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Engine

from portal.adapters.db.jobs import JobTables
from portal.core.auth.person import Person
from portal.core.cluster.jobs import JobReport, JobState
from portal.core.interfaces.systems import Clock
from portal.core.jobs.actions import JobAction, JobOutcome
from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.query import JobPage, JobQuery
from portal.core.session.pending_reasons import Reason, explain_reason
from portal.errors import Conflict, NotFound
from portal.services.jobs.jobs import Jobs


def job(number: int, now: datetime, user: str = "alice", **changes: Any) -> Job:
    """A pending job; changes of its report, of its texts and of itself."""
    texts = {name: changes.pop(name) for name in list(changes) if name in JobTexts.__match_args__}
    own = {name: changes.pop(name) for name in list(changes) if name in Job.__match_args__}
    state = JobState(changes.pop("state", "PENDING"))
    begun = state is not JobState.PENDING
    start = now - timedelta(minutes=10) if begun else None
    values: dict[str, Any] = {
        "reason": None if begun else "Priority",
        "submitted": now - timedelta(hours=1) + timedelta(seconds=number),
        "start": start,
        "end": now if state.over else None,
        "deadline": now + timedelta(minutes=50) if begun and not state.over else None,
        "nodes": ("n1",) if begun else (),
        "exit_code": 0 if state.over else None,
        "partition": "main",
        "priority": 1000 - number,
        "account": "research",
        "qos": "normal",
        "cpus": 1,
        "memory_mb": 1024,
        "time_limit": 60,
    }
    report = JobReport(str(number), user, state, **(values | changes))
    return Job(report, texts=JobTexts(**{"name": f"job{number}", **texts}), **own)


def array(number: int, now: datetime, running: int, waiting: str = "", **changes: Any) -> list[Job]:
    """An array: tasks 0 to `running` - 1 have started, the others wait in one record."""
    changes = {"name": f"array{number}", "array_id": str(number), **changes}
    made = [
        job(number + 1 + task, now, tasks=str(task), **{"state": "RUNNING", **changes})
        for task in range(running)
    ]
    rest = changes | {"state": "PENDING"}
    return made + ([job(number, now, tasks=waiting, **rest)] if waiting else [])


def store_jobs(engine: Engine, now: datetime, *jobs: Job) -> None:
    """Store jobs with their texts, as the worker does."""
    tables = JobTables(engine)
    tables.save(jobs, now)
    tables.settle([one for one in jobs if one.report.state.over])
    tables.save_texts({one.id: one.texts for one in jobs})


@dataclass
class ListedJobs(Jobs):
    """Reads the tables; writes down actions, and refuses those in `refused`."""

    engine: Engine
    clock: Clock
    acts: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def _tables(self) -> JobTables:
        return JobTables(self.engine)

    def get(self, person: Person, shown_id: str) -> Job:
        found = self._tables.get(shown_id)
        if found is None or not (person.admin or found.report.user == person.name):
            raise NotFound("There is no such job.")
        return found

    def query(self, person: Person, query: JobQuery) -> JobPage:
        if not person.admin and query.owner not in (None, person.name):
            return JobPage()
        return self._tables.query(self._of(person, query), self.clock())

    def counts(self, person: Person, query: JobQuery) -> dict[JobTab, int]:
        return self._tables.counts(self._of(person, query), self.clock())

    def owners(self, person: Person) -> list[str]:
        return self._tables.owners() if person.admin else []

    def reason(self, job: Job) -> Reason | None:
        return explain_reason(job.report.reason) if job.tab is JobTab.PENDING else None

    def end_text(self, job: Job) -> str:
        return f"It ended: {job.report.state}." if job.report.state.over else ""

    def ahead(self, job: Job) -> int | None:
        return self._tables.ahead([job]).get(job.id)

    def act(self, person: Person, action: JobAction, ids: Iterable[str]) -> list[JobOutcome]:
        wanted = list(ids)
        for one in wanted:
            self.get(person, one)
        self.acts.append((person.name, action, tuple(wanted)))
        return [
            JobOutcome(one, one not in self.refused, self.refused.get(one, "Done."))
            for one in wanted
        ]

    def extend(self, person: Person, shown_id: str, minutes: int | Literal["max"] | None) -> Job:
        found = self.get(person, shown_id)
        limit = found.report.time_limit
        if found.report.state is not JobState.RUNNING or limit is None:
            raise Conflict("Only running jobs can be extended.")
        more = 60 if minutes in (None, "max") else int(minutes)
        return replace(found, report=replace(found.report, time_limit=limit + more))

    def _of(self, person: Person, query: JobQuery) -> JobQuery:
        return query.model_copy(update={"owner": query.owner if person.admin else person.name})

"""Jobs for the tests of pages and API: rows in the real tables, as the worker writes them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job, JobTexts
from tests.support.fakes import World


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


def store_jobs(world: World, *jobs: Job) -> None:
    """Store jobs with their texts, as the worker does."""
    tables = world.systems.stores.jobs
    tables.save(jobs, world.clock())
    tables.settle([one for one in jobs if one.report.state.over])
    tables.save_texts({one.id: one.texts for one in jobs})

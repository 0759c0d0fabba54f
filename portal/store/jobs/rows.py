"""Conversion of jobs to rows of the database, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import RowMapping, Table
from sqlmodel import SQLModel

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.output_paths import expand_path
from portal.errors import visible
from portal.store.tables import CountedTasksRow, JobTextRow
from portal.store.tables.jobs import IS_LIVE, IS_OVER, JOBS

NOT_YET = datetime(9999, 12, 31, tzinfo=UTC)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIMES = (NOT_YET, NEVER)
NO_LIMIT = 2**31 - 1
"""The time limit of jobs without one, so that lists sort them after the longest one."""
MAX_NAME, MAX_PATH = 200, 4096
"""Characters of users' texts that are stored."""

Values = dict[str, Any]


def table(row: type[SQLModel]) -> Table:
    """The table of a row's class, for SQLAlchemy Core statements, which are faster."""
    mapped: Table = row.__table__  # type: ignore[attr-defined]
    return mapped


TEXTS = table(JobTextRow)
COUNTED = table(CountedTasksRow)

OVER_STATES = tuple(state.value for state in JobState if state.over)
QUEUE_COLUMNS = (
    "owner", "state", "tab", "reason", "nodes", "submitted", "started", "ended", "deadline",
    "time_limit", "restarts", "exit_code", "signal", "partition", "priority", "account", "qos",
    "cpus", "memory_mb", "shards", "gpus", "array_id", "tasks", "het_id", "het_offset",
)  # fmt: skip
"""Columns that the queue reports."""


def on_tab(tab: JobTab) -> list[Any]:
    """The conditions of one tab, with those of the partial indexes."""
    return [IS_OVER] if tab is JobTab.ENDED else [JOBS.c.tab == tab.value, IS_LIVE]


def queue_values(job: Job, now: datetime) -> Values:
    """The columns of a job that the queue or accounting reported."""
    report, tab = job.report, job.tab
    submitted = report.submitted or now
    over = tab is JobTab.ENDED
    values = {name: getattr(report, name) for name in QUEUE_COLUMNS if hasattr(report, name)}
    return values | {
        "owner": report.user,
        "state": report.state.value,
        "tab": tab.value,
        "status_key": _status_key(report),
        "submitted": submitted,
        "started": report.start or (NEVER if over else NOT_YET),
        "ended": (report.end or now) if over else NOT_YET,
        "time_limit": NO_LIMIT if report.time_limit is None else report.time_limit,
        "place": -report.priority,
        "signal": job.signal,
        "array_id": int(job.array_id) if job.array_id else None,
        "tasks": job.tasks,
        "het_id": int(job.het_id) if job.het_id else None,
        "het_offset": job.het_offset,
    }


def _status_key(report: JobReport) -> str:
    """The sort key of a job's status: its state, and the reason while it is pending."""
    reason = report.reason if report.state is JobState.PENDING else None
    return f"{report.state.value} {reason or ''}".strip()


def text_values(texts: JobTexts) -> Values:
    """The columns of a job's texts except for its name; clipped, and without NUL."""
    return {
        name: getattr(texts, name).replace("\0", "")[:MAX_PATH]
        for name in ("directory", "command", "stdout", "stderr", "dependency")
    }


def shown_name(name: str) -> str:
    """A job's name as it is stored: unprintable characters are replaced."""
    return visible(name[:MAX_NAME])


def _time(value: datetime) -> datetime | None:
    return None if value in _NO_TIMES else value


def job_of(values: RowMapping, texts: JobTexts) -> Job:
    """The job of a row, with these texts."""
    over = values["tab"] == JobTab.ENDED
    report = JobReport(
        job_id=str(values["number"]),
        user=values["owner"],
        state=JobState(values["state"]),
        start=_time(values["started"]),
        end=_time(values["ended"]) if over else None,
        time_limit=None if values["time_limit"] == NO_LIMIT else values["time_limit"],
        **{name: values[name] for name in _SAME},
    )
    if report.state is JobState.CANCELLED and values["stopped_by"]:
        report = replace(report, cancelled_by=values["stopped_by"])
    job = Job(
        report=report,
        array_id=str(values["array_id"] or ""),
        tasks=values["tasks"],
        het_id=str(values["het_id"] or ""),
        het_offset=values["het_offset"],
        signal=values["signal"],
        texts=texts,
        session=values["session"],
        gone=values["gone"],
    )
    # Patterns are expanded on reading: the record of an array's pending tasks becomes that of its
    # last task.
    stdout, stderr = expand_path(texts.stdout, job), expand_path(texts.stderr, job)
    return replace(job, texts=replace(texts, stdout=stdout, stderr=stderr))


_SAME = (
    "reason", "nodes", "submitted", "deadline", "restarts", "exit_code",
    "partition", "priority", "account", "qos", "cpus", "memory_mb", "shards", "gpus",
    "cancelled_by",
)  # fmt: skip


def texts_of(name: str, row: RowMapping | None) -> JobTexts:
    """A job's texts from its row in job_text; without one, its name only."""
    if row is None:
        return JobTexts(name)
    texts = {key: row[key] for key in ("directory", "command", "stdout", "stderr", "dependency")}
    return JobTexts(name, **texts)


def pieces(values: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Split values into pieces, because databases limit the number of parameters."""
    return [values[start : start + size] for start in range(0, len(values), size)]

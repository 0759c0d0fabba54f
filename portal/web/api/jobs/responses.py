"""Builds the response models of jobs, for the API and for the pages."""

from __future__ import annotations

from collections.abc import Sequence

from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.query import JobRow
from portal.web.api.models.jobs import JobFacts, JobOut
from portal.web.context import services


def job_response(job: Job) -> JobOut:
    """The response model of one job."""
    return row_responses([JobRow(job)])[0]


def row_responses(rows: Sequence[JobRow]) -> list[JobOut]:
    """The response models of the rows of a list; the positions in the queue take few queries."""
    waiting = [row.job for row in rows if row.job.tab is JobTab.PENDING]
    ahead = services().jobs.ahead_of(waiting)
    return [JobOut.of(row.job, _facts(row, ahead.get(row.job.id))) for row in rows]


def _facts(row: JobRow, ahead: int | None) -> JobFacts:
    jobs = services().jobs
    return JobFacts(
        reason=jobs.reason(row.job),
        ahead=ahead,
        end_text=jobs.end_text(row.job),
        gpus=services().gpus,
        states=row.states if row.is_array else None,
    )

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
    """The response models of the rows of a list; what is looked up takes few queries."""
    jobs, listed = services().jobs, [row.job for row in rows]
    ahead = jobs.ahead_of([job for job in listed if job.tab is JobTab.PENDING])
    ends = jobs.end_texts(listed)
    return [
        JobOut.of(row.job, _facts(row, ahead.get(row.job.id), ends[row.job.id])) for row in rows
    ]


def _facts(row: JobRow, ahead: int | None, end_text: str) -> JobFacts:
    jobs = services().jobs
    return JobFacts(
        reason=jobs.reason(row.job),
        ahead=ahead,
        end_text=end_text,
        gpus=services().gpus,
        states=row.states if row.is_array else None,
    )

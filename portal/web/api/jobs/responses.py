"""Builds the response models of jobs, for the API and for the pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from portal.core.cluster.jobs import JobState
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.query import JobRow
from portal.web.api.models.jobs import JobFacts, JobOut
from portal.web.context import services


def job_response(job: Job) -> JobOut:
    """The response model of one job."""
    return JobOut.of(job, _facts(job, None))


def row_responses(rows: Iterable[JobRow]) -> list[JobOut]:
    """The response models of the rows of a list."""
    return [
        JobOut.of(row.job, _facts(row.job, row.states if row.is_array else None)) for row in rows
    ]


def _facts(job: Job, states: Mapping[JobState, int] | None) -> JobFacts:
    jobs = services().jobs
    return JobFacts(
        reason=jobs.reason(job),
        ahead=jobs.ahead(job) if job.tab is JobTab.PENDING else None,
        end_text=jobs.end_text(job),
        gpus=services().gpus,
        states=states,
    )

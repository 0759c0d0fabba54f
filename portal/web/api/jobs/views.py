"""Lists, shows and controls jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from flask.typing import ResponseReturnValue
from pydantic import BaseModel, Field

from portal.core.jobs.actions import JobAction
from portal.core.jobs.query import MAX_AT_ONCE, JobQuery
from portal.core.validation import Matching
from portal.errors import Conflict
from portal.web.api.jobs.blueprint import blueprint
from portal.web.api.jobs.responses import job_response, row_responses
from portal.web.api.lifecycle import ExtendRequest
from portal.web.api.models.base import REQUEST, some_of
from portal.web.api.models.jobs import JobOut, JobOutcomeOut, JobOutcomesOut, JobPageOut
from portal.web.api.operation import operation
from portal.web.context import person, services
from portal.web.http.body import read_model, read_nothing, read_query

NUMBER = r"[0-9]{1,10}(_([0-9]{1,9}|\[[0-9,:%.-]{1,200}\])|\+[0-9]{1,9})?"
JobId = Annotated[
    str, Matching(NUMBER, "write a job's number as Slurm shows it: 123, 123_4 or 123+1")
]


class JobActRequest(BaseModel):
    """The jobs to act on."""

    model_config = REQUEST

    ids: Annotated[
        list[JobId],
        Field(min_length=1, max_length=MAX_AT_ONCE),
        some_of(MAX_AT_ONCE, "jobs"),
    ]
    """Numbers as Slurm's commands show them; the number of an array refers to all its tasks."""


@blueprint.get("/jobs")
@operation("List jobs, a page at a time; arrays are one row", JobPageOut, query=JobQuery)
def list_jobs() -> JobPageOut:
    """Jobs, by default newest first; administrators see those of all users."""
    page = services().jobs.query(person(), read_query(JobQuery))
    return JobPageOut(
        jobs=row_responses(page.rows), next_cursor=page.following, searched_since=page.since
    )


@blueprint.get("/jobs/<job_id>")
@operation("Show one job", JobOut)
def get_job(job_id: str) -> JobOut:
    """One job; the number of an array shows the tasks that have not started, else the last one."""
    return job_response(services().jobs.get(person(), job_id))


@blueprint.delete("/jobs/<job_id>")
@operation("Cancel a job, or all tasks of an array; idempotent", JobOut, status=202)
def cancel_job(job_id: str) -> JobOut:
    """Cancel a job; no effect on one that is over, and 409 for one that cannot be cancelled."""
    read_nothing()
    jobs = services().jobs
    jobs.get(person(), job_id)
    refused = [
        outcome for outcome in jobs.act(person(), JobAction.CANCEL, [job_id]) if not outcome.done
    ]
    job = jobs.get(person(), job_id)
    if refused and not job.report.state.over:
        raise Conflict(refused[0].text)
    return job_response(job)


def _action_view(action: JobAction, summary: str) -> Callable[[], ResponseReturnValue]:
    @operation(summary, JobOutcomesOut, status=202, body=JobActRequest)
    def view() -> JobOutcomesOut:
        outcomes = services().jobs.act(person(), action, read_model(JobActRequest).ids)
        return JobOutcomesOut(outcomes=[JobOutcomeOut.of(outcome) for outcome in outcomes])

    return view


ACTIONS = {
    JobAction.CANCEL: "Cancel many jobs",
    JobAction.HOLD: "Hold pending jobs: they do not start until they are released",
    JobAction.RELEASE: "Release held jobs",
    JobAction.REQUEUE: "Stop running jobs and queue them again",
}
for _action, _summary in ACTIONS.items():
    blueprint.post(f"/jobs/{_action}", endpoint=f"{_action}_jobs")(_action_view(_action, _summary))


@blueprint.post("/jobs/<job_id>/extend")
@operation("Extend a running job", JobOut, body=ExtendRequest, body_required=False)
def extend_job(job_id: str) -> JobOut:
    """Extend a running job, up to the longest limit that its owner could have requested."""
    minutes = read_model(ExtendRequest, optional=True).minutes
    return job_response(services().jobs.extend(person(), job_id, minutes))

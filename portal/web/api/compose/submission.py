"""POST /api/v1/jobs: submitting a job."""

from __future__ import annotations

from pydantic import BaseModel

from portal.web.api import guarded
from portal.web.api.compose.models import (
    JobSubmissionOut,
    JobSubmitRequest,
    SubmittedJobOut,
    split_body,
)
from portal.web.api.models.base import REQUEST
from portal.web.api.operation import IDEMPOTENCY_KEY, Reply, operation
from portal.web.context import person, services
from portal.web.http.body import read_json
from portal.web.http.idempotency import key_of_request

blueprint = guarded("job_submission")


class SubmitOptions(BaseModel):
    """Options of a submission that are not part of the job."""

    model_config = REQUEST

    test_only: bool = False


@blueprint.post("/jobs")
@operation(
    "Submit a job",
    JobSubmissionOut,
    status=201,
    other_statuses=(200,),
    body=JobSubmitRequest,
    header=IDEMPOTENCY_KEY,
)
def submit_job() -> Reply[JobSubmissionOut]:
    """Submit a job with `slipway sbatch`; with "test_only" (200), only check it."""
    data, options = split_body(read_json(), SubmitOptions)
    composer = services().composer
    request = composer.parse(person(), data)
    key = key_of_request()
    if options.test_only:
        return Reply(JobSubmissionOut(check=composer.check(person(), request)), status=200)
    number = composer.submit(person(), request, key)
    headers = {"Location": f"/api/v1/jobs/{number}"}
    return Reply(JobSubmissionOut(job=SubmittedJobOut(id=number)), headers=headers)

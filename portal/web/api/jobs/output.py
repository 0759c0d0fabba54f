"""The output and the usage of jobs over the REST API."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from portal.core.jobs.output import Stream
from portal.web.api.jobs.blueprint import blueprint
from portal.web.api.models.jobs import JobOutputOut, JobUsageOut
from portal.web.api.operation import operation
from portal.web.context import person, services
from portal.web.http.body import read_query
from portal.web.log_text import decode


class OutputQuery(BaseModel):
    """The part of the output to read: from the byte `offset` on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stream: Stream = Stream.STDOUT
    """Both are the same for a job without a separate file for errors."""
    offset: Annotated[int, Field(ge=0, lt=2**63)] = 0


@blueprint.get("/jobs/<job_id>/output")
@operation("Read what a job has written", JobOutputOut, query=OutputQuery)
def read_job_output(job_id: str) -> JobOutputOut:
    """Part of a job's output; `next_offset` is the offset of the next part."""
    query = read_query(OutputQuery)
    piece = services().job_outputs.read(person(), job_id, query.stream, query.offset)
    text, following = decode(piece.data, piece.offset)
    return JobOutputOut(output=text, offset=piece.offset, next_offset=following)


@blueprint.get("/jobs/<job_id>/usage")
@operation("Show what a job uses, or has used", JobUsageOut)
def get_job_usage(job_id: str) -> JobUsageOut:
    """The usage that Slurm reports for a job that runs or is over."""
    return JobUsageOut.of(services().job_use.refresh(person(), job_id))

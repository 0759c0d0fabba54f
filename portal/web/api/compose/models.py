"""Request and response models for submitting jobs, and for job templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, WithJsonSchema

from portal.core.jobs.compose.drafts import JobTemplate, Shared
from portal.core.jobs.compose.submission import JobRequest
from portal.core.validation import validated
from portal.web.api.models.base import REQUEST, ResponseModel, Time

Model = TypeVar("Model", bound=BaseModel)


class JobSubmitRequest(JobRequest):
    """A job to submit: a script or its path, and its options."""

    model_config = REQUEST

    test_only: bool = False
    """Only check it, with sbatch --test-only."""


class SubmittedJobOut(ResponseModel):
    """A job that Slurm accepted."""

    id: str
    """Its number; for an array or a heterogeneous job, the number of the whole."""


class JobSubmissionOut(ResponseModel):
    """A submitted job, or the result of a check."""

    job: SubmittedJobOut | None = None
    check: str | None = None
    """The output of sbatch --test-only; its times are in UTC."""


class Sharing(BaseModel):
    """The users with whom a template is shared."""

    model_config = REQUEST

    shared: Shared = Shared.NOBODY
    account: Annotated[str, Field(max_length=64)] = ""
    """The Slurm account that it is shared with; by default, the caller's default account."""


class JobTemplateRequest(JobRequest, Sharing):
    """A job to submit, and the users with whom it is shared as a template."""

    model_config = REQUEST


class TemplateQuery(BaseModel):
    """The owner of the template."""

    model_config = REQUEST

    owner: Annotated[str | None, Field(max_length=64)] = None
    """By default, the caller's."""


class JobTemplateOut(ResponseModel):
    """A job that was saved under a name."""

    owner: str
    name: str
    saved: Time
    shared: Shared
    account: str
    """The Slurm account that may use it, if it is shared with one."""
    job: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]
    """A JobSubmitRequest; lists omit the script."""

    @classmethod
    def of(cls, template: JobTemplate) -> JobTemplateOut:
        """Build it."""
        return cls(
            owner=template.owner,
            name=template.name,
            saved=template.saved,
            shared=template.shared,
            account=template.account,
            job=template.body,
        )


class JobTemplateListOut(ResponseModel):
    """The templates that the caller may use: their own first, then by name."""

    templates: list[JobTemplateOut]


def split_body(data: object, model: type[Model]) -> tuple[object, Model]:
    """Split a body into the job and the fields of `model`; raises InvalidRequest for these."""
    if not isinstance(data, Mapping):
        return data, model()
    names = set(model.model_fields)
    job = {name: value for name, value in data.items() if name not in names}
    fields = {name: value for name, value in data.items() if name in names}
    # From JSON: in strict mode, pydantic accepts a string for an enum only from there.
    return job, validated(lambda: model.model_validate_json(json.dumps(fields)))

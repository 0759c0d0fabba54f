"""Job templates over the REST API."""

from __future__ import annotations

from portal.web.api import guarded
from portal.web.api.compose.models import (
    JobTemplateListOut,
    JobTemplateOut,
    JobTemplateRequest,
    Sharing,
    TemplateQuery,
    split_body,
)
from portal.web.api.models.base import NoContent
from portal.web.api.operation import Reply, operation
from portal.web.context import person, services
from portal.web.http.body import read_json, read_nothing, read_query

blueprint = guarded("job_templates")


@blueprint.get("/job-templates")
@operation("List job templates", JobTemplateListOut)
def list_job_templates() -> JobTemplateListOut:
    """The caller's job templates, and those that others share with them."""
    templates = services().job_templates.list(person())
    return JobTemplateListOut(templates=[JobTemplateOut.of(template) for template in templates])


@blueprint.get("/job-templates/<name>")
@operation("Read a job template", JobTemplateOut, query=TemplateQuery)
def get_job_template(name: str) -> JobTemplateOut:
    """One job template, with its script."""
    return JobTemplateOut.of(services().job_templates.get(person(), _owner(), name))


@blueprint.put("/job-templates/<name>")
@operation(
    "Create or replace a job template",
    JobTemplateOut,
    other_statuses=(201,),
    body=JobTemplateRequest,
)
def save_job_template(name: str) -> Reply[JobTemplateOut]:
    """Save a job under a name; the caller's own template of the same name is replaced."""
    data, sharing = split_body(read_json(), Sharing)
    request = services().composer.parse(person(), data)
    saved, new = services().job_templates.save(
        person(), name, request, sharing.shared, sharing.account
    )
    return Reply(JobTemplateOut.of(saved), status=201 if new else 200)


@blueprint.delete("/job-templates/<name>")
@operation("Delete a job template", NoContent, query=TemplateQuery)
def delete_job_template(name: str) -> NoContent:
    """Delete a job template of one's own; administrators also one that is shared with everybody."""
    read_nothing()
    services().job_templates.remove(person(), _owner(), name)
    return NoContent()


def _owner() -> str:
    return read_query(TemplateQuery).owner or person().name

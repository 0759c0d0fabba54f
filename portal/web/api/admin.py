"""Administrators' settings and the audit log; 404 for other users.

A GET returns an ETag; a change that sends it as If-Match is rejected (409) if the resource was
modified in the meantime. Without If-Match the last change wins.
"""

from __future__ import annotations

from portal.core.admin.audit import AuditQuery, read_cursor
from portal.core.admin.caps import CapsRequest
from portal.core.admin.images import ImageRequest
from portal.core.admin.templates import TemplateRequest
from portal.core.cluster.node_list import NodeQuery
from portal.core.launch.templates import Template
from portal.core.site_rules import SiteRules
from portal.errors import Unavailable
from portal.web.api import guarded
from portal.web.api.models.admin import (
    CapsOut,
    ImageRuleListOut,
    ImageRuleOut,
    JournalEntryOut,
    JournalPageOut,
    LimitsOut,
    LimitsQuery,
    NodeListOut,
    NodeOut,
)
from portal.web.api.models.base import NoContent
from portal.web.api.models.templates import TemplateOut
from portal.web.api.models.usage_report import (
    InUseOut,
    LimitedUsageQuery,
    UsageNowOut,
    UsageNowQuery,
    UsageReportOut,
)
from portal.web.api.operation import IF_MATCH, Reply, expected_tag, operation, tagged
from portal.web.context import person, services
from portal.web.http.body import read_model, read_nothing, read_query

blueprint = guarded("admin")


@blueprint.before_request
def guard() -> None:
    """Refuse other users before anything is read, so that no response reveals what exists."""
    services().administration.admit(person())


# Templates


@blueprint.get("/admin/templates/<name>")
@operation("Show a resource template", TemplateOut)
def get_resource_template(name: str) -> Reply[TemplateOut]:
    """One template."""
    return _template(services().administration.template(person(), name))


@blueprint.put("/admin/templates/<name>")
@operation(
    "Create or replace a resource template", TemplateOut, body=TemplateRequest, header=IF_MATCH
)
def save_resource_template(name: str) -> Reply[TemplateOut]:
    """Create or replace a template."""
    template = read_model(TemplateRequest)
    return _template(
        services().administration.save_template(person(), name, template, expected_tag())
    )


@blueprint.delete("/admin/templates/<name>")
@operation("Delete a resource template", NoContent, header=IF_MATCH)
def delete_resource_template(name: str) -> NoContent:
    """Delete a template."""
    read_nothing()
    services().administration.drop_template(person(), name, expected_tag())
    return NoContent()


def _template(template: Template) -> Reply[TemplateOut]:
    return tagged(TemplateOut.of(template), template)


# Images


@blueprint.get("/admin/images")
@operation("All images, and who can see each", ImageRuleListOut)
def list_image_rules() -> ImageRuleListOut:
    """All images with their visibility."""
    pairs = services().administration.rules_of(person(), services().catalog())
    return ImageRuleListOut(images=[ImageRuleOut.of(image, rule) for image, rule in pairs])


@blueprint.get("/admin/images/<environment>/<version>")
@operation("Who can see an image", ImageRuleOut)
def get_image_rule(environment: str, version: str) -> Reply[ImageRuleOut]:
    """The visibility of an image."""
    catalog = services().catalog()
    image, rule = services().administration.image_rule(person(), catalog, environment, version)
    return tagged(ImageRuleOut.of(image, rule), rule)


@blueprint.put("/admin/images/<environment>/<version>")
@operation("Set who can see an image", ImageRuleOut, body=ImageRequest, header=IF_MATCH)
def set_image_rule(environment: str, version: str) -> Reply[ImageRuleOut]:
    """Set who can see an image."""
    body = read_model(ImageRequest)
    administration, catalog = services().administration, services().catalog()
    rule = administration.save_image_rule(
        person(), catalog, environment, version, body, expected_tag()
    )
    image, _ = administration.image_rule(person(), catalog, environment, version)
    return tagged(ImageRuleOut.of(image, rule), rule)


# Caps and limits


@blueprint.get("/admin/caps")
@operation("The caps", CapsOut)
def get_caps() -> Reply[CapsOut]:
    """The administrators' caps on resources for which Slurm has no limit."""
    return _caps(services().administration.site_rules())


@blueprint.put("/admin/caps")
@operation("Replace the caps", CapsOut, body=CapsRequest, header=IF_MATCH)
def save_caps() -> Reply[CapsOut]:
    """Replace the caps; those that are null or omitted are removed."""
    return _caps(
        services().administration.save_rules(person(), read_model(CapsRequest), expected_tag())
    )


def _caps(rules: SiteRules) -> Reply[CapsOut]:
    return tagged(CapsOut.of(rules), rules)


@blueprint.get("/admin/limits")
@operation("Slurm's limits, in plain words", LimitsOut, query=LimitsQuery)
def get_limits() -> LimitsOut:
    """Slurm's limits in plain words, each with the command that changes it."""
    query = read_query(LimitsQuery)
    limits = services().administration.limits(person())
    if limits is None:
        raise Unavailable("Slurm's limits have not been read yet. Try again in a minute.")
    return LimitsOut.of(limits.named(query.name or ""), query.limit)


@blueprint.get("/admin/nodes")
@operation("Who holds what on which node", NodeListOut, query=NodeQuery)
def list_nodes() -> NodeListOut:
    """A page of the nodes: their states and resources, and the users who hold them."""
    page = services().administration.node_page(person(), read_query(NodeQuery))
    return NodeListOut(
        nodes=[NodeOut.of(node) for node in page.nodes],
        matching=page.matching,
        next_cursor=page.following,
    )


# Usage


@blueprint.get("/admin/usage")
@operation(
    "Who used what over time, of the sessions that the portal knows",
    UsageReportOut,
    query=LimitedUsageQuery,
)
def get_usage_report() -> UsageReportOut:
    """Sums of sessions over time."""
    query = read_query(LimitedUsageQuery)
    return UsageReportOut.of_report(services().usage.report(person(), query), query.limit)


@blueprint.get("/admin/usage/now")
@operation("Who uses what now", UsageNowOut, query=UsageNowQuery)
def get_usage_now() -> UsageNowOut:
    """The users who have sessions now, with the resources they hold."""
    now, most = services().usage.now(person()), read_query(UsageNowQuery).limit
    return UsageNowOut(people=[InUseOut.of(use) for use in now[:most]], number=len(now))


# The audit log


@blueprint.get("/journal")
@operation("Who did what, newest first", JournalPageOut, query=AuditQuery)
def list_journal() -> JournalPageOut:
    """The entries of the audit log, newest first."""
    query = read_query(AuditQuery)
    before = read_cursor(query.cursor)
    events, following = services().administration.events(person(), query, query.limit, before)
    return JournalPageOut(
        entries=[JournalEntryOut.of(event) for event in events],
        next_cursor=None if following is None else str(following),
    )

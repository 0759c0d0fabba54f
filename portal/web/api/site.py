"""The site's offers, and the caller's account."""

from __future__ import annotations

from collections.abc import Mapping

from portal.core.apps.catalog import Catalog, Image
from portal.web.api import guarded
from portal.web.api.choice.models import AccountQuery, UseQuery
from portal.web.api.models.site import (
    EnvironmentListOut,
    EnvironmentOut,
    MeOut,
    ResourceGroupListOut,
    ResourceGroupOut,
    UsageOut,
    VersionOut,
)
from portal.web.api.models.templates import OfferedTemplateListOut, OfferedTemplateOut
from portal.web.api.operation import operation
from portal.web.context import cluster_view, person, services, site_rules
from portal.web.http.body import read_query

blueprint = guarded("site", for_services=True)


@blueprint.get("/environments")
@operation("What can be launched", EnvironmentListOut)
def list_environments() -> EnvironmentListOut:
    """The environments that the caller may launch, with their versions, newest first."""
    catalog = services().administration.visible_catalog(person(), services().catalog())
    visibility = _visibility(catalog) if person().admin else {}
    versions_by_name: dict[str, list[VersionOut]] = {}
    for image in catalog.images:
        versions_by_name.setdefault(image.environment, []).append(
            _version(catalog, image, visibility)
        )
    return EnvironmentListOut(
        environments=[
            EnvironmentOut(name=name, title=catalog.environment_title(name), versions=versions)
            for name, versions in versions_by_name.items()
        ]
    )


def _visibility(catalog: Catalog) -> dict[str, str]:
    """The visibility of each image, by the image's path; for administrators."""
    rules = services().administration.rules_of(person(), catalog)
    return {image.path: rule.seen_by for image, rule in rules}


def _version(catalog: Catalog, image: Image, visibility: Mapping[str, str]) -> VersionOut:
    apps = catalog.apps_of(image.environment, image.version)
    label = catalog.naming(image.environment, image.version).version
    return VersionOut.of(image, label, apps, visibility.get(image.path))


@blueprint.get("/resource-groups")
@operation("The resource groups open to you", ResourceGroupListOut, query=AccountQuery)
def list_resource_groups() -> ResourceGroupListOut:
    """The partitions that are open to the caller, with the caller's limits in each."""
    options = read_query(AccountQuery).options
    gpus = services().gpus
    cap = site_rules().max_shared_memory_mb
    partitions = cluster_view().partitions_with(person().name, options)
    groups = [
        ResourceGroupOut.of(partition, gpus.offers(partition), cap) for partition in partitions
    ]
    return ResourceGroupListOut(resource_groups=groups)


@blueprint.get("/templates")
@operation("List resource templates", OfferedTemplateListOut)
def list_resource_templates() -> OfferedTemplateListOut:
    """The resource templates, and whether the caller may launch with them."""
    templates, rules = services().administration.templates(), site_rules()
    whys = cluster_view().template_misfits(
        person().name, templates, rules, services().gpus, services().clock()
    )
    pairs = zip(templates, whys, strict=True)
    return OfferedTemplateListOut(
        templates=[OfferedTemplateOut.offer(template, why) for template, why in pairs]
    )


@blueprint.get("/usage")
@operation("Your usage and limits in a resource group", UsageOut, query=UseQuery)
def get_usage() -> UsageOut:
    """The caller's usage and limits in a resource group, and the resources free for them now."""
    query = read_query(UseQuery)
    usage = cluster_view().usage_with(person().name, query.resource_group, query.options)
    return UsageOut.of(usage)


@blueprint.get("/me")
@operation("The user that the token belongs to", MeOut)
def get_me() -> MeOut:
    """The user that the token belongs to."""
    return MeOut.of(person())

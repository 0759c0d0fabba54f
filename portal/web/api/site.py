"""What the site offers, and who is asking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flask.typing import ResponseReturnValue
from pydantic import BaseModel, ConfigDict

from portal.core.apps.catalog import Catalog, Image
from portal.core.cluster.fgpu import Slice, to_number
from portal.core.cluster.gpu_offers import GpuOffer
from portal.core.cluster.usage import Meter, Number
from portal.core.launch.templates import Template
from portal.core.policy import misfit
from portal.core.units import format_size
from portal.core.validation import Word
from portal.errors import FieldError, InvalidRequest
from portal.web.api import guarded
from portal.web.body import read_query
from portal.web.context import person, services

blueprint = guarded("site")

BOUNDED = ("cpus", "memory", "time")


@blueprint.get("/environments")
def environments() -> ResponseReturnValue:
    """The environments that whoever asks may launch, with their versions, newest first."""
    catalog = services().administration.visible_catalog(person(), services().catalog())
    names = dict.fromkeys(image.environment for image in catalog.images)
    marks = _marks(catalog) if person().admin else {}
    return {"environments": [_environment(catalog, name, marks) for name in names]}


def _marks(catalog: Catalog) -> dict[str, dict[str, str]]:
    """Administrators see all images, so theirs say who else does."""
    rules = services().administration.rules_of(person(), catalog)
    return {image.path: {"seen_by": rule.seen_by} for image, rule in rules}


def _environment(
    catalog: Catalog, name: str, marks: Mapping[str, dict[str, str]]
) -> dict[str, Any]:
    images: Iterable[Image] = (i for i in catalog.images if i.environment == name)
    versions = [_version(catalog, image) | marks.get(image.path, {}) for image in images]
    return {"name": name, "versions": versions}


def _version(catalog: Catalog, image: Image) -> dict[str, Any]:
    apps = catalog.apps_of(image.environment, image.version)
    return {
        "version": image.version,
        "title": image.title,
        "description": image.description,
        "default_app": image.default_app,
        "apps": [{"name": app.name, "title": app.title} for app in apps],
    }


@blueprint.get("/resource-groups")
def resource_groups() -> ResponseReturnValue:
    """The partitions open to whoever asks, and how large their sessions may be; minutes."""
    gpus = services().gpus
    cap = services().administration.site_rules().max_shared_memory_mb
    groups = [
        {
            "name": partition.name,
            "default": partition.default,
            "open": partition.up,
            "max_cpus": partition.max_cpus,
            "max_memory": format_size(partition.max_memory_mb),
            "max_time_limit": partition.max_minutes,
            "max_running": partition.max_jobs,
            "max_shared_memory": cap and format_size(cap),
            "bounded_by": {name: partition.why[name] for name in BOUNDED if name in partition.why},
            "gpus": [_offer(offer) for offer in gpus.offers(partition)],
        }
        for partition in services().cluster.partitions_for(person().name) or []
    ]
    return {"resource_groups": groups}


def _offer(offer: GpuOffer) -> dict[str, Any]:
    return {
        "kind": offer.kind.name,
        "title": offer.kind.title,
        "max_fgpu": to_number(offer.amounts[-1].fgpu),
        "bounded_by": offer.why,
        "amounts": [_amount(one) for one in offer.amounts],
    }


def _amount(one: Slice) -> dict[str, Any]:
    return {
        "fgpu": to_number(one.fgpu),
        "memory": format_size(one.memory_mb),
        "sm_percent": one.sm_percent,
    }


@blueprint.get("/templates")
def templates() -> ResponseReturnValue:
    """The resource templates, and whether one may launch with them."""
    groups = services().cluster.partitions_for(person().name)
    found = services().administration.templates()
    rules, gpus = services().administration.site_rules(), services().gpus
    return {"templates": [_template(one, misfit(one, groups, rules, gpus)) for one in found]}


def _template(template: Template, why: str) -> dict[str, Any]:
    shared = template.shared_memory_mb
    return {
        "name": template.name,
        "title": template.title,
        "description": template.description,
        "resources": {
            "cpus": template.cpus,
            "memory": format_size(template.memory_mb),
            "shared_memory": None if shared is None else format_size(shared),
            "fgpu": template.fgpu,
            "gpu_kind": template.gpu_kind,
        },
        "time_limit": template.time_limit,
        "resource_group": template.resource_group,
        "fits": not why,
        "why": why,
    }


class UseQuery(BaseModel):
    """Which resource group; the usual one when none is named."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    resource_group: Word | None = None


@blueprint.get("/usage")
def usage() -> ResponseReturnValue:
    """What one holds in a resource group, may hold there, and could have at once."""
    wanted = read_query(UseQuery).resource_group
    found = services().cluster.usage_for(person().name, wanted)
    if found is None:
        text = "this resource group is not open to you"
        raise InvalidRequest([FieldError("resource_group", text)])
    return {
        "resource_group": found.group,
        "cpus": _meter(found.cpus, int),
        "memory": _meter(found.memory, format_size),
        "fgpu": found.fgpu and _meter(found.fgpu, float),
    }


def _meter(meter: Meter[Number], written: Callable[[Number], object]) -> dict[str, object]:
    parts = {"mine": meter.mine, "allowed": meter.allowed, "available": meter.available}
    return {name: None if part is None else written(part) for name, part in parts.items()}


@blueprint.get("/me")
def me() -> ResponseReturnValue:
    """Whom the token stands for."""
    return {"name": person().name, "admin": person().admin}

"""What the site offers, and who is asking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flask.typing import ResponseReturnValue

from portal.core.app import Catalog, Image
from portal.core.launch import format_size
from portal.web.api import guarded
from portal.web.context import person, services

blueprint = guarded("site")


@blueprint.get("/environments")
def environments() -> ResponseReturnValue:
    """All environments with their versions, newest first."""
    catalog = services().sessions.catalog()
    names = dict.fromkeys(image.environment for image in catalog.images)
    return {"environments": [_environment(catalog, name) for name in names]}


def _environment(catalog: Catalog, name: str) -> dict[str, Any]:
    images: Iterable[Image] = (i for i in catalog.images if i.environment == name)
    return {"name": name, "versions": [_version(catalog, image) for image in images]}


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
    """Slurm's partitions, and how large a session in each may be; time in minutes."""
    groups = [
        {
            "name": partition.name,
            "default": partition.default,
            "open": partition.up,
            "max_cpus": partition.max_cpus,
            "max_memory": format_size(partition.max_memory_mb),
            "max_time_limit": partition.max_minutes,
        }
        for partition in services().sessions.status.partitions()
    ]
    return {"resource_groups": groups}


@blueprint.get("/me")
def me() -> ResponseReturnValue:
    """Whom the token stands for."""
    return {"name": person().name, "admin": person().admin}

"""Resource templates in a launch: the name stands for what it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from portal.core.administration import Template
from portal.core.bounds import Group
from portal.core.launch import format_size
from portal.core.policy import group_for
from portal.errors import FieldError, InvalidRequest


def fill(data: object, templates: Sequence[Template]) -> object:
    """Put a template's resources in the place of its name. Raises InvalidRequest."""
    if not isinstance(data, Mapping) or "template" not in data:
        return data
    rest: dict[str, Any] = {name: value for name, value in data.items() if name != "template"}
    found = next((t for t in templates if t.name == data["template"]), None)
    if found is None:
        raise InvalidRequest([FieldError("template", "there is no such template")])
    if "resources" in rest:
        raise InvalidRequest([FieldError("template", "ask for a template or for resources")])
    rest["resources"] = {"cpus": found.cpus, "memory": format_size(found.memory_mb)}
    if found.shared_memory_mb is not None:
        rest["resources"]["shared_memory"] = format_size(found.shared_memory_mb)
    for name, value in (("time_limit", found.time_limit), ("resource_group", found.resource_group)):
        if value is not None:
            rest.setdefault(name, value)
    return rest


def misfit(template: Template, groups: Sequence[Group] | None, wanted: str | None) -> str:
    """Why a template can never be granted in a group; nothing when it can."""
    group = group_for(template.resource_group or wanted, groups or [])
    if groups is None:
        return ""
    if group is None:
        return f"it runs in {template.resource_group}, which is not open to you"
    if template.cpus > group.max_cpus:
        return group.too_much("cpus")
    if template.memory_mb > group.max_memory_mb:
        return group.too_much("memory")
    if group.max_minutes is not None and (template.time_limit or 0) > group.max_minutes:
        return group.too_much("time")
    return ""

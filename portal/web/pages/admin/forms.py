"""The administrators' forms: converts fields to requests, and back with errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.core.admin.images import ImageRule
from portal.core.admin.templates import TemplateRequest
from portal.core.launch.request import Resources
from portal.core.launch.templates import Template
from portal.core.site_rules import SiteRules
from portal.core.units import exact_size
from portal.errors import InvalidRequest, PortalError
from portal.web.api.models.templates import TemplateOut
from portal.web.numbers import decimal, trim, whole
from portal.web.pages.launch.form import FGPU, flat_values
from portal.web.pages.launch.slurm_fields import EXCLUSIVE

_SHOWN = 16_000
"""Characters; the longest list of users that is accepted."""
_NUMBERS = ("resources.cpus",)


@dataclass(frozen=True)
class AdminForm:
    """The values of a form's fields, and their errors."""

    values: Mapping[str, str]
    etag: str = ""
    """The ETag of the edited resource; "" for a new one."""
    errors: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def rejected(values: Mapping[str, str], etag: str, error: PortalError) -> AdminForm:
    """The form as it was sent, with the errors beside its fields."""
    beside: dict[str, str] = {}
    unplaced: list[str] = []
    for invalid in error.errors if isinstance(error, InvalidRequest) else ():
        # The error of a list item is at "accounts.0"; the form has one field for the list.
        name = invalid.field.partition(".")[0] if invalid.field not in values else invalid.field
        if name in values:
            beside.setdefault(name, invalid.message)
        else:
            unplaced.append(f"{invalid.field}: {invalid.message}")
    problem = "; ".join(unplaced) or ("" if beside else error.text)
    # Longer values are always rejected, so they are not sent back.
    shown = {name: value if len(value) <= _SHOWN else "" for name, value in values.items()}
    return AdminForm(shown, etag, beside, problem)


TEMPLATE_FIELDS = (
    "name",
    *(name for name in TemplateRequest.model_fields if name not in ("resources", "place")),
    *(f"resources.{name}" for name in Resources.model_fields),
)


def template_values(template: Template | None) -> dict[str, str]:
    """The fields of a template; a new one proposes one core."""
    empty = dict.fromkeys(TEMPLATE_FIELDS, "")
    if template is None:
        return empty | {"resources.cpus": "1"}
    values = flat_values(TemplateOut.of(template).model_dump(mode="json"))
    return {name: values[name] for name in TEMPLATE_FIELDS}


def template_request(values: Mapping[str, str]) -> dict[str, Any]:
    """The request body from a template's fields; empty fields are omitted."""
    data: dict[str, Any] = {"resources": {}}
    for name in TEMPLATE_FIELDS[1:]:
        value = trim(values.get(name, ""))
        if not value:
            continue
        group, _, last = name.rpartition(".")
        target = data["resources"] if group else data
        target[last] = _read(name, value)
    return data


def _read(name: str, value: str) -> object:
    if name == FGPU:
        return decimal(value)
    if name == EXCLUSIVE:  # validation rejects values that no checked box has
        return True if value == "on" else value
    return whole(value) if name in _NUMBERS else value


def image_values(rule: ImageRule) -> dict[str, str]:
    """The fields of an image's rule."""
    return {
        "seen_by": rule.seen_by,
        "accounts": ", ".join(rule.accounts),
        "users": ", ".join(rule.users),
    }


def image_request(values: Mapping[str, str]) -> dict[str, Any]:
    """The request body from the fields of an image's rule."""
    return {
        "seen_by": values.get("seen_by", ""),
        "accounts": _names(values.get("accounts", "")),
        "users": _names(values.get("users", "")),
    }


CAPS_FIELDS = (
    "max_shared_memory",
    "idle_minutes",
    "idle_warning",
    "idle_cpu_percent",
    "public_apps",
    "preferred_ports",
)
_CAPS_NUMBERS = ("idle_minutes", "idle_warning", "idle_cpu_percent")


def caps_values(rules: SiteRules) -> dict[str, str]:
    """The fields of the caps."""
    cap = rules.max_shared_memory_mb
    return {
        "max_shared_memory": exact_size(cap) if cap else "",
        "idle_minutes": str(rules.idle_minutes or ""),
        "idle_warning": str(rules.idle_warning or ""),
        "idle_cpu_percent": str(rules.idle_cpu_percent),
        "public_apps": "on" if rules.public_apps else "",
        "preferred_ports": "on" if rules.preferred_ports else "",
    }


def caps_request(values: Mapping[str, str]) -> dict[str, Any]:
    """The request body from the fields of the caps."""
    entered = {name: trim(values.get(name, "")) for name in CAPS_FIELDS}
    numbers = {name: whole(entered[name]) for name in _CAPS_NUMBERS if entered[name]}
    # Browsers omit unchecked boxes.
    ticked: dict[str, object] = {"": False, "on": True}
    boxes = {
        name: ticked.get(entered[name], entered[name])
        for name in ("public_apps", "preferred_ports")
    }
    return {"max_shared_memory": entered["max_shared_memory"] or None, **numbers, **boxes}


def _names(text: str) -> list[str]:
    return [name for name in re.split(r"[\s,;]+", text) if name]

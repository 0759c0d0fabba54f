"""The launch form: from its fields to a request, and back onto the page with what was wrong."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from portal.core.app import Catalog
from portal.core.job import Partition
from portal.core.launch import MAX_COUNT
from portal.core.policy import group_for
from portal.errors import InvalidRequest, PortalError
from portal.web.body import decode_json

FIELDS = (
    "environment",
    "version",
    "name",
    "resources.cpus",
    "resources.memory",
    "resources.shared_memory",
    "resource_group",
    "time_limit",
    "count",
    "env",
)
NUMBERS = frozenset({"resources.cpus", "time_limit", "count"})
ENV = "env"
"""Holds an object in JSON, which the page's dialog writes."""
OURS = frozenset({"csrf_token", "key"})
"""Fields that are the form's own business and no part of the request."""
ADVANCED = frozenset({"resource_group", "time_limit", "count", "resources.shared_memory", ENV})


@dataclass(frozen=True)
class LaunchForm:
    """All that the launch panel shows."""

    catalog: Catalog
    open_to_me: Sequence[Partition] | None
    """The resource groups that this person may use; None while none are known."""
    values: dict[str, str]
    errors: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    max_count: int = MAX_COUNT
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """One launch for each page that was shown: a double click sends the same key twice."""

    @property
    def environments(self) -> list[str]:
        """Names of the environments, in the catalog's order."""
        return list(dict.fromkeys(image.environment for image in self.catalog.images))

    @property
    def groups(self) -> Sequence[Partition]:
        """The resource groups to choose from."""
        return self.open_to_me or []

    @property
    def group(self) -> Partition | None:
        """The group whose bounds are shown."""
        return group_for(self.values.get("resource_group") or None, self.groups)

    @property
    def advanced_open(self) -> bool:
        """Whether the folded part has something that must be seen."""
        return any(self.errors.get(name) or self.values.get(name) for name in ADVANCED)

    @property
    def variables(self) -> list[str]:
        """Names of the environment variables that were entered."""
        found = _object(self.values.get(ENV) or "{}")
        return [str(name) for name in found] if isinstance(found, dict) else []


def first_values(catalog: Catalog) -> dict[str, str]:
    """What a new form proposes: small, so that it starts at once."""
    image = catalog.proposed
    return {
        "environment": image.environment if image else "",
        "version": image.version if image else "",
        "resources.cpus": "1",
        "resources.memory": "1 GB",
    }


def entered(form: Mapping[str, str]) -> dict[str, str]:
    """The values of the fields, to be shown again."""
    return {name: form.get(name, "") for name in FIELDS}


def to_request(form: Mapping[str, str]) -> dict[str, Any]:
    """Put the fields into the shape that parse_launch checks.

    Empty fields count as not given; unknown ones stay, so that they are refused by name.
    """
    data: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    for name, text in form.items():
        value = text.strip()
        if name in OURS or not value:
            continue
        place, _, last = name.rpartition(".")
        if place == "resources":
            resources[last] = _value(name, value)
        else:
            data[name] = _value(name, value)
    # A field that is itself called "resources" must not stand in for those that make it up.
    return {"resources": resources} | data


def _value(name: str, text: str) -> object:
    if name == ENV:
        return _object(text)
    return _number(text) if name in NUMBERS else text


def _object(text: str) -> object:
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return text


def _number(text: str) -> int | str:
    # What is no number stays text, and the one place that checks requests says so.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def with_error(form: LaunchForm, error: PortalError) -> LaunchForm:
    """Return the same form with what was wrong beside its fields."""
    found = error.errors if isinstance(error, InvalidRequest) else ()
    beside: dict[str, str] = {}
    rest = []
    for e in found:
        name, _, variable = e.field.partition(".")
        if e.field in FIELDS:
            beside[e.field] = e.message
        elif name == ENV:
            said = e.message if variable in e.message else f"{variable}: {e.message}"
            beside[ENV] = "; ".join(filter(None, [beside.get(ENV), said]))
        else:
            rest.append(f"{e.field}: {e.message}".removeprefix(": "))
    problem = "; ".join(rest) or ("" if beside else error.text)
    return LaunchForm(form.catalog, form.open_to_me, form.values, beside, problem)

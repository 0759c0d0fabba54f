"""The launch form: its fields as a launch's body in the words of the REST API, and back again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.core.apps.catalog import Catalog
from portal.core.launch.environment import MAX_TOTAL
from portal.core.launch.mounts import MAX_MOUNTS
from portal.core.units import exact_size, parse_size
from portal.errors import FieldError, PortalError
from portal.web.body import NotJson, decode_json
from portal.web.numbers import decimal, trim, whole

IMAGE = "image"
"""Environment and version in one choice, as environment/version."""
GPU = "gpu"
"""Kind and amount of a GPU in one choice, as kind/amount; the amount alone without kinds."""
ENV = "env"
"""Holds an object in JSON, which the page's dialog writes."""
MOUNT, READ_ONLY = "mount", "read_only"
TEMPLATE = "template"
SIZES = ("resources.memory", "resources.shared_memory")
NUMBERS = frozenset({"resources.cpus", "time_limit", "count"})
FGPU, GPU_KIND = "resources.fgpu", "resources.gpu_kind"
OURS = frozenset({"csrf_token", "key", "confirmed", "folder", "preset", "replace"})
"""Fields that are the form's own business and no part of the request."""

MAX_SHOWN = 1000
"""Characters of a field that a refused form shows again."""
_SHOWN = {ENV: 6 * MAX_TOTAL}
_MAX_TICKED = 3 * MAX_MOUNTS

STEPS: dict[str, tuple[str, ...]] = {
    "environment": ("environment", "version", "name", ENV),
    "folders": ("mounts", "folder"),
    "resources": (
        "resource_group",
        TEMPLATE,
        "resources.cpus",
        *SIZES,
        FGPU,
        GPU_KIND,
        "count",
        "time_limit",
    ),
    "review": ("preset",),
}
"""The wizard's steps, with the fields whose errors belong there."""
FIELDS = frozenset(name for names in STEPS.values() for name in names)
STEP_OF = {name: step for step, names in STEPS.items() for name in names}


@dataclass(frozen=True)
class Entered:
    """What stands in the form's fields."""

    values: dict[str, str]
    mounts: dict[str, bool] = field(default_factory=dict)
    """The folders that are ticked, and whether they are read-only."""


def first_values(catalog: Catalog) -> dict[str, str]:
    """What a new form proposes: small, so that it starts at once."""
    image = catalog.proposed
    return {
        "environment": image.environment if image else "",
        "version": image.version if image else "",
        "resources.cpus": "1",
        "resources.memory": "1 GB",
    }


def entered(form: MultiDict[str, str]) -> Entered:
    """The form's fields, to be shown again."""
    values = {name: _shown(name, form.get(name, "")) for name in FIELDS}
    if IMAGE in form:
        values["environment"], _, values["version"] = form[IMAGE].partition("/")
    if GPU in form:
        values[GPU_KIND], _, values[FGPU] = form[GPU].rpartition("/")
    mounts = {name: ro for name, ro in _mounts(form).items() if len(name) <= MAX_SHOWN}
    return Entered(values, dict(itertools.islice(mounts.items(), _MAX_TICKED)))


def _shown(name: str, text: str) -> str:
    # What is longer can only be refused, and is not sent back and forth any more.
    return text if len(text) <= _SHOWN.get(name, MAX_SHOWN) else ""


def _mounts(form: MultiDict[str, str]) -> dict[str, bool]:
    read_only = frozenset(form.getlist(READ_ONLY))
    return {folder: folder in read_only for folder in form.getlist(MOUNT)}


def to_body(form: MultiDict[str, str]) -> dict[str, Any]:
    """Put the fields into the shape that a launch's body has.

    Empty fields count as not given; unknown ones stay, so that they are refused by name.
    """
    body: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    for name, text in form.items():
        value = trim(text)
        place, _, last = name.rpartition(".")
        if name in OURS or name in (MOUNT, READ_ONLY) or not value:
            continue
        if name == IMAGE:
            environment, _, version = value.partition("/")
            body |= {"environment": environment, "version": version}
        elif name == GPU:
            kind, _, amount = value.rpartition("/")
            resources |= {"fgpu": decimal(amount)} | ({"gpu_kind": kind} if kind else {})
        elif place == "resources":
            resources[last] = _value(name, value)
        else:
            body[name] = _value(name, value)
    made: dict[str, Any] = {}
    # A template is chosen instead: what the folded fields still hold does not count.
    if TEMPLATE not in body:
        made["resources"] = resources
    mounts = _mounts(form)
    if mounts:
        made["mounts"] = [{"folder": name, "read_only": ro} for name, ro in mounts.items()]
    # Fields that are themselves called so must not stand in for those that make them up.
    return made | body


def again(form: MultiDict[str, str]) -> list[tuple[str, str]]:
    """The fields of a form that was found right, to be sent once more; none longer than it must."""
    written = {ENV: lambda text: json.dumps(_object(text), ensure_ascii=False)}
    sent = [
        (name, written.get(name, trim)(value) if value else "")
        for name, value in form.items(multi=True)
        if name != "csrf_token"
    ]
    return [(name, value) for name, value in sent if len(value) <= _SHOWN.get(name, MAX_SHOWN)]


def _value(name: str, text: str) -> object:
    if name == ENV:
        return _object(text)
    if name == FGPU:
        return decimal(text)
    return whole(text) if name in NUMBERS else text


def _object(text: str) -> object:
    try:
        return decode_json(text)
    except NotJson:
        return text


def from_body(body: Mapping[str, Any]) -> Entered:
    """Fill the form with a launch's body: to_body gives the same body back."""
    plain = {name: value for name, value in body.items() if name != "mounts"}
    values = dict.fromkeys(FIELDS, "") | flat_values(plain)
    mounts = body.get("mounts", [])
    return Entered(values, {m["folder"]: m.get("read_only", False) for m in mounts})


def flat_values(body: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a body as a form shows them; its resources' as "resources.<name>"."""
    flat = {name: value for name, value in body.items() if name != "resources"}
    flat |= {f"resources.{name}": value for name, value in body.get("resources", {}).items()}
    return {name: _written(name, value) for name, value in flat.items()}


def _written(name: str, value: object) -> str:
    if value is None:
        return ""
    if name == ENV:
        # As it is: an escaped letter would be six times as long when it is sent again.
        return json.dumps(value, ensure_ascii=False)
    if name in SIZES and isinstance(value, str):
        return exact_size(parse_size(value))
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value)


def variables(values: Mapping[str, str]) -> list[str]:
    """Names of the environment variables that were entered."""
    found = _object(values.get(ENV) or "{}")
    return [str(name) for name in found] if isinstance(found, dict) else []


def sort_errors(error: PortalError, found: tuple[FieldError, ...]) -> tuple[dict[str, str], str]:
    """What is said beside each field, and what belongs to none of them."""
    beside: dict[str, str] = {}
    rest = []
    for e in found:
        name, _, below = e.field.partition(".")
        if e.field in FIELDS and e.field not in beside:
            beside[e.field] = e.message
        elif name == ENV:
            # A message begins with a word of ours, which pages write large; names stay as sent.
            told = e.message if e.message.startswith(f"{below} ") else f"{below}: {e.message}"
            said = f"variable {told}" if below else e.message
            beside[ENV] = "; ".join(filter(None, [beside.get(ENV), said]))
        elif name == "mounts":
            beside[name] = "; ".join(filter(None, [beside.get(name), e.message]))
        else:
            rest.append(f"{e.field}: {e.message}".removeprefix(": "))
    return beside, "; ".join(rest) or ("" if beside else error.text)

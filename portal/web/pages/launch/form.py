"""The launch form: converts its fields to the body of a launch request, and back."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.core.apps.catalog import Catalog
from portal.core.launch.environment import MAX_TOTAL, parse_lines, to_lines
from portal.core.launch.mounts import MAX_MOUNTS
from portal.core.launch.own_image import OWN
from portal.core.units import exact_size, parse_size, short_minutes, with_unit
from portal.errors import FieldError, InvalidRequest, PortalError
from portal.node.common.json_text import NotJson, decode_json
from portal.web.numbers import decimal, trim, whole
from portal.web.pages.launch.slurm_fields import EXCLUSIVE, OFF
from portal.web.pages.launch.slurm_fields import LABELS as SLURM_LABELS

IMAGE = "image"
"""One field for environment and version: "environment/version"."""
OWN_IMAGE = "own_image"
"""The address or path of the user's own image, if IMAGE is "own"."""
GPU = "gpu"
"""One field for type and amount of a GPU: "type/amount", or the amount if GPUs have no types."""
ENV = "env"
"""A JSON object, written by the dialog for environment variables."""
ENV_LINES = "env_lines"
"""The same as lines of NAME=value, from browsers without JavaScript."""
MOUNT, READ_ONLY = "mount", "read_only"
TEMPLATE = "template"
SIZES = ("resources.memory", "resources.shared_memory")
NUMBERS = frozenset({"resources.cpus", "count"})
TIME = "time_limit"
TIME_PROPOSED = "time_proposed"
"""The time that the form proposed; unchanged, it is not part of the request."""
PROPOSED = "proposed"
"""Whether the selected folders are still the proposed ones."""
EXCLUSIVE_OF = "exclusive_of"
"""The template whose default the box for the whole node showed; unticking overrides it."""
FGPU, GPU_KIND = "resources.fgpu", "resources.gpu_kind"
OURS = frozenset(
    {"csrf_token", "who", "key", "confirmed", "folder", "preset", "replace"}
    | {TIME_PROPOSED, PROPOSED, OWN_IMAGE, EXCLUSIVE_OF}
)
"""Fields of the form that are not part of the request."""

MAX_SHOWN = 1000
"""The longest value, in characters, that a rejected form shows again."""
_SHOWN = dict.fromkeys((ENV, ENV_LINES), 6 * MAX_TOTAL)
_MAX_TICKED = 3 * MAX_MOUNTS

STEPS: dict[str, tuple[str, ...]] = {
    "environment": ("environment", "version", IMAGE, "name", ENV),
    "folders": ("mounts", "folder"),
    "resources": (
        "resource_group",
        *SLURM_LABELS,
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
"""The wizard's steps, and the fields whose errors each one shows."""
LABELS = {
    "environment": "Environment",
    "version": "Version",
    IMAGE: "Your own image",
    "name": "Session name",
    ENV: "Environment variables",
    "mounts": "Folders",
    "folder": "New storage folder",
    "resource_group": "Resource group",
    **SLURM_LABELS,
    TEMPLATE: "Resources",
    "resources.cpus": "CPU cores",
    "resources.memory": "Memory",
    "resources.shared_memory": "Shared memory",
    FGPU: "GPU",
    GPU_KIND: "GPU",
    "count": "Number of sessions",
    "time_limit": "Time limit",
    "preset": "Preset",
}
"""The fields' labels, for messages that are not beside their field."""
FIELDS = frozenset(name for names in STEPS.values() for name in names)
STEP_OF = {name: step for step, names in STEPS.items() for name in names}


@dataclass(frozen=True)
class FormValues:
    """The values of the form's fields."""

    values: dict[str, str]
    mounts: dict[str, bool] = field(default_factory=dict)
    """The selected folders, and whether they are read-only."""


def first_values(catalog: Catalog, used: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """Defaults of a new form: small, so that the session starts at once.

    `used`: the environments and versions that the user launched lately, newest first.
    """
    images = (catalog.image(environment, version) for environment, version in used)
    candidates = (image for image in images if image and not image.retired)
    image = next(candidates, catalog.proposed)
    return {
        "environment": image.environment if image else "",
        "version": image.version if image else "",
        "resources.cpus": "1",
        "resources.memory": "1 GB",
    }


def submitted_values(form: MultiDict[str, str]) -> FormValues:
    """The values of a submitted form, to be shown again."""
    values = {name: _shown(name, form.get(name, "")) for name in FIELDS}
    values |= {name: with_unit(values[name]) for name in SIZES}
    if ENV_LINES in form:
        values[ENV_LINES] = _shown(ENV_LINES, form[ENV_LINES])
        values[ENV] = ""
    values |= dict.fromkeys(_unticked(form), OFF)
    values[OWN_IMAGE] = _shown(OWN_IMAGE, form.get(OWN_IMAGE, ""))
    if IMAGE in form:
        values["environment"], _, values["version"] = form[IMAGE].partition("/")
    if GPU in form:
        values[GPU_KIND], _, values[FGPU] = form[GPU].rpartition("/")
    mounts = {name: ro for name, ro in ticked_mounts(form).items() if len(name) <= MAX_SHOWN}
    return FormValues(values, dict(itertools.islice(mounts.items(), _MAX_TICKED)))


def _shown(name: str, text: str) -> str:
    # Longer values are always rejected, so they are not sent back.
    return text if len(text) <= _SHOWN.get(name, MAX_SHOWN) else ""


def ticked_mounts(form: MultiDict[str, str]) -> dict[str, bool]:
    """The selected folders, and whether they are read-only."""
    read_only = frozenset(form.getlist(READ_ONLY))
    return {folder: folder in read_only for folder in form.getlist(MOUNT)}


def to_body(form: MultiDict[str, str]) -> dict[str, Any]:
    """The body of a launch request from the form's fields.

    Empty fields are omitted; unknown ones are kept, so that validation rejects them by name.
    """
    body: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    for name, text in form.items():
        value = trim(text)
        group, _, last = name.rpartition(".")
        if not value or not _is_part_of_request(form, name, value):
            continue
        if name == IMAGE and value == OWN:
            body[IMAGE] = trim(form.get(OWN_IMAGE, ""))
        elif name == IMAGE:
            environment, _, version = value.partition("/")
            body |= {"environment": environment, "version": version}
        elif name == ENV_LINES:
            body[ENV] = parse_lines(value)
        elif name == GPU:
            kind, _, amount = value.rpartition("/")
            resources |= {"fgpu": decimal(amount)} | ({"gpu_kind": kind} if kind else {})
        elif group == "resources":
            resources[last] = _value(name, value)
        else:
            body[name] = _value(name, value)
    assembled: dict[str, Any] = dict.fromkeys(_unticked(form), False)
    # With a template, the hidden resource fields are ignored.
    if TEMPLATE not in body:
        assembled["resources"] = resources
    mounts = ticked_mounts(form)
    if mounts:
        assembled["mounts"] = [{"folder": name, "read_only": ro} for name, ro in mounts.items()]
    # A submitted field named "resources" or "mounts" replaces the assembled value and is rejected.
    return assembled | body


def _unticked(form: MultiDict[str, str]) -> list[str]:
    """[EXCLUSIVE] if the user has unticked the default of the chosen template, else []."""
    template = trim(form.get(TEMPLATE, ""))
    shown_for = trim(form.get(EXCLUSIVE_OF, ""))
    return [EXCLUSIVE] if template and template == shown_for and EXCLUSIVE not in form else []


def _is_part_of_request(form: MultiDict[str, str], name: str, value: str) -> bool:
    if name in OURS or name in (MOUNT, READ_ONLY):
        return False
    if name == TIME:
        return value != trim(form.get(TIME_PROPOSED, ""))
    return name != ENV or ENV_LINES not in form


def resent_fields(form: MultiDict[str, str]) -> list[tuple[str, str]]:
    """The fields of a valid form, to be sent again; with values as short as possible."""
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
    if name == EXCLUSIVE and text == "on":
        return True
    if name in SIZES:
        return with_unit(text)
    return whole(text) if name in NUMBERS else text


def _object(text: str) -> object:
    try:
        return decode_json(text)
    except NotJson:
        return text


def from_body(body: Mapping[str, Any]) -> FormValues:
    """Fill the form from the body of a launch request; the inverse of `to_body`."""
    plain = {name: value for name, value in body.items() if name != "mounts"}
    values = dict.fromkeys(FIELDS, "") | flat_values(plain)
    if image := plain.get(IMAGE):
        values |= {"environment": OWN, OWN_IMAGE: str(image)}
    mounts = body.get("mounts", [])
    return FormValues(values, {m["folder"]: m.get("read_only", False) for m in mounts})


def flat_values(body: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a body as the form shows them; those of resources as "resources.<name>"."""
    flat = {name: value for name, value in body.items() if name != "resources"}
    flat |= {f"resources.{name}": value for name, value in body.get("resources", {}).items()}
    return {name: _written(name, value) for name, value in flat.items()}


def _written(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    if name == EXCLUSIVE:
        return "on"
    if name == ENV:
        # Not escaped, which would make a character six times as long.
        return json.dumps(value, ensure_ascii=False)
    if name in SIZES and isinstance(value, str):
        return exact_size(parse_size(value))
    if name == TIME and isinstance(value, int):
        return short_minutes(value)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value)


def variables(values: Mapping[str, str]) -> list[str]:
    """The names of the environment variables that were entered."""
    return list(_entered_variables(values))


def variable_lines(values: Mapping[str, str]) -> str | None:
    """The environment variables as lines; None if they cannot be written so."""
    if ENV_LINES in values:
        return values[ENV_LINES]
    return to_lines(_entered_variables(values))


def _entered_variables(values: Mapping[str, str]) -> dict[str, str]:
    if ENV_LINES in values:
        try:
            return parse_lines(values[ENV_LINES])
        except InvalidRequest:
            return {}
    variables = _object(values.get(ENV) or "{}")
    return {str(k): str(v) for k, v in variables.items()} if isinstance(variables, dict) else {}


def all_errors(error: InvalidRequest) -> dict[str, object]:
    """The errors for the page's script, by field and by variable."""
    beside, problem = sort_errors(error, error.errors)
    if GPU_KIND in beside:  # one menu for both
        beside.setdefault(FGPU, beside.pop(GPU_KIND))
    below = [(e.field.partition("."), e.message) for e in error.errors]
    variables = {name: text for (top, _, name), text in below if top == ENV and name}
    plain = {name: text[:1].upper() + text[1:] for name, text in beside.items()}
    return {"errors": plain, "problem": problem, "variables": variables}


def sort_errors(
    error: PortalError, errors: tuple[FieldError, ...], fields: Collection[str] = FIELDS
) -> tuple[dict[str, str], str]:
    """The errors by field of the form, and a text with all other errors."""
    beside: dict[str, str] = {}
    unplaced = []
    for e in errors:
        name, _, below = e.field.partition(".")
        if e.field in fields and e.field not in beside:
            beside[e.field] = e.message
        elif name == ENV:
            # Pages capitalise messages, but a variable's name must stay as it was sent.
            text = e.message if e.message.startswith(f"{below} ") else f"{below}: {e.message}"
            message = f"variable {text}" if below else e.message
            beside[ENV] = "; ".join(filter(None, [beside.get(ENV), message]))
        elif name == "mounts":
            beside[name] = "; ".join(filter(None, [beside.get(name), e.message]))
        else:
            unplaced.append(f"{e.field}: {e.message}".removeprefix(": "))
    return beside, "; ".join(unplaced) or ("" if beside else error.text)

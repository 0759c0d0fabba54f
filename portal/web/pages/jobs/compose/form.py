"""The composer's form: converts its fields to the body of a request for a job, and back."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping
from typing import Any

from werkzeug.datastructures import MultiDict

from portal.core.jobs.compose.options import MAX_OPTIONS, divide
from portal.core.jobs.compose.submission import MAX_SCRIPT, normal_script
from portal.core.launch.mounts import MAX_MOUNTS
from portal.core.units import with_unit
from portal.errors import FieldError, InvalidRequest
from portal.web.numbers import decimal, trim, whole
from portal.web.pages.launch.form import (
    FGPU,
    GPU,
    GPU_KIND,
    MAX_SHOWN,
    MOUNT,
    READ_ONLY,
    SIZES,
    FormValues,
    flat_values,
    ticked_mounts,
)
from portal.web.pages.launch.slurm_fields import NAMED

SCRIPT, PATH, OPTIONS, ARGUMENTS = "script", "path", "options", "args"
SOURCE = "source"
"""The source of the script: "editor", or "file" for a file that is submitted unchanged."""
IMAGE, OWN_IMAGE = "image", "own_image"
OWN = "own"
"""The choice of IMAGE that refers to OWN_IMAGE; "" means no image."""
NUMBERS = frozenset({"resources.nodes", "resources.tasks", "resources.cpus"})
NOT_SENT = frozenset(
    {"csrf_token", "who", "key", "afresh", "template", "shared", "replace", SOURCE, OWN_IMAGE}
    | {MOUNT, READ_ONLY, SCRIPT, PATH}
)
"""Fields of the form that `to_body` omits or treats separately."""

LABELS = {
    SCRIPT: "Script",
    PATH: "Script file",
    ARGUMENTS: "Arguments",
    "name": "Job name",
    IMAGE: "Image",
    "resource_group": "Partition",
    **NAMED,
    "resources.nodes": "Nodes",
    "resources.tasks": "Tasks",
    "resources.cpus": "Cores per task",
    "resources.memory": "Memory on each node",
    "resources.shared_memory": "Shared memory",
    FGPU: "GPU",
    GPU_KIND: "GPU",
    "time_limit": "Time limit",
    "mounts": "Folders",
    "directory": "Working folder",
    "array": "Array",
    OPTIONS: "More Slurm options",
    "template": "Template",
}
FIELDS = frozenset(LABELS)
_WORDS = frozenset({OPTIONS, ARGUMENTS})
"""Fields that are split into words as in a shell."""
_LONGEST = {SCRIPT: MAX_SCRIPT, OPTIONS: MAX_OPTIONS, ARGUMENTS: MAX_OPTIONS}
NEW_SCRIPT = "#!/bin/bash\n\n"


def submitted_values(form: MultiDict[str, str]) -> FormValues:
    """The values of a submitted form, to be shown again."""
    names = FIELDS | {SOURCE, OWN_IMAGE, "shared"}
    values = {name: _shown(name, form.get(name, "")) for name in names}
    values |= {name: with_unit(values[name]) for name in SIZES}
    values[SCRIPT] = normal_script(values[SCRIPT])
    if GPU in form:
        values[GPU_KIND], _, values[FGPU] = form[GPU].rpartition("/")
    mounts = {name: ro for name, ro in ticked_mounts(form).items() if len(name) <= MAX_SHOWN}
    return FormValues(values, dict(itertools.islice(mounts.items(), 3 * MAX_MOUNTS)))


def _shown(name: str, text: str) -> str:
    # Longer values are always rejected, so they are not sent back.
    return text if len(text) <= _LONGEST.get(name, MAX_SHOWN) else ""


def to_body(form: MultiDict[str, str]) -> dict[str, Any]:
    """The body of a request for a job from the form's fields; raises InvalidRequest.

    Empty fields are omitted; unknown ones are kept, so that validation rejects them by name.
    """
    body: dict[str, Any] = _script_of(form)
    resources: dict[str, Any] = {}
    for name, text in form.items():
        value = trim(text)
        if not value or name in NOT_SENT:
            continue
        group, _, last = name.rpartition(".")
        if name == GPU:
            kind, _, amount = value.rpartition("/")
            resources |= {"fgpu": decimal(amount)} | ({"gpu_kind": kind} if kind else {})
        elif group == "resources":
            resources[last] = _value(name, value)
        elif name == IMAGE and value == OWN:
            body[IMAGE] = trim(form.get(OWN_IMAGE, ""))
        else:
            body[name] = _split(name, value) if name in _WORDS else value
    if resources:
        body["resources"] = resources
    if mounts := ticked_mounts(form):
        body["mounts"] = [{"folder": name, "read_only": ro} for name, ro in mounts.items()]
    return body


def _script_of(form: MultiDict[str, str]) -> dict[str, Any]:
    if form.get(SOURCE) == "file":
        return {PATH: trim(form.get(PATH, ""))}
    return {SCRIPT: normal_script(form.get(SCRIPT, ""))}


def _value(name: str, text: str) -> object:
    if name in NUMBERS:
        return whole(text)
    if name == FGPU:
        return decimal(text)
    return with_unit(text) if name in SIZES else text


def _split(name: str, text: str) -> list[str]:
    try:
        return divide(text)
    except ValueError as error:
        raise InvalidRequest([FieldError(name, str(error))]) from None


def from_body(body: Mapping[str, Any], own_image: bool) -> FormValues:
    """Fill the form from the body of a request; the inverse of `to_body`.

    `own_image`: whether its image is not one of the site's.
    """
    plain = {name: value for name, value in body.items() if name not in {"mounts"} | _WORDS}
    values = dict.fromkeys(FIELDS, "") | flat_values(plain)
    values |= {name: shlex.join(body.get(name, ())) for name in _WORDS}
    values[SOURCE] = "file" if PATH in body else "editor"
    values[SCRIPT] = body.get(SCRIPT, "") or (NEW_SCRIPT if PATH not in body else "")
    if own_image:
        values |= {IMAGE: OWN, OWN_IMAGE: str(body.get(IMAGE, ""))}
    mounts = body.get("mounts", ())
    return FormValues(values, {mount["folder"]: mount.get("read_only", False) for mount in mounts})

"""Resource templates, which are expanded before a launch request is validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field

from portal.core.launch.request import Fgpu, GpuKindName
from portal.core.slurm_options import Constraint, GroupName, SlurmName, SlurmOptions
from portal.core.units import (
    MAX_MEMORY_MB,
    MIN_MEMORY_MB,
    Minutes,
    format_size,
)
from portal.core.validation import (
    _CHECKED,
    Word,
    _not_blank,
    _one_line,
    checked,
)
from portal.errors import FieldError, InvalidRequest

FIELD = "template"
OPTIONS = ("account", "qos", "reservation", "constraint", "exclusive")
"""The fields for Slurm's own options."""


def fill(data: object, templates: Iterable[Template]) -> object:
    """Replace the name of a template in untrusted input with the template's fields.

    Fields of the request take precedence, except for the resources: those come from the template
    or from the request, never from both. Raises InvalidRequest for the field "template".
    """
    if not isinstance(data, Mapping) or FIELD not in data:
        return data
    fields = {key: value for key, value in data.items() if key != FIELD}
    name = data[FIELD]
    if name is None:
        return fields
    template = next((t for t in templates if t.name == name), None)
    if template is None:
        text = "there is no template of this name"
        raise _refusal(text if isinstance(name, str) else "this must be text")
    if fields.get("resources", {}) != {}:
        raise _refusal("name a template or resources, not both")
    defaults = {key: getattr(template, key) for key in ("resource_group", "time_limit", *OPTIONS)}
    from_template = {key: value for key, value in defaults.items() if value not in (None, False)}
    overrides = {key: value for key, value in fields.items() if value is not None}
    return fields | from_template | overrides | {"resources": _resources(template)}


def options_with(template: Template, chosen: SlurmOptions) -> SlurmOptions:
    """Slurm's options of a launch with a template: the chosen ones, else the template's."""
    return SlurmOptions(
        account=chosen.account or template.account or "",
        qos=chosen.qos or template.qos or "",
        reservation=chosen.reservation or template.reservation or "",
        constraint=chosen.constraint or template.constraint or "",
        exclusive=chosen.exclusive or template.exclusive,
    )


def _refusal(text: str) -> InvalidRequest:
    return InvalidRequest([FieldError(FIELD, text)])


def _resources(template: Template) -> dict[str, Any]:
    sizes = {"memory": template.memory_mb, "shared_memory": template.shared_memory_mb}
    sizes_text = {key: format_size(mb) for key, mb in sizes.items() if mb is not None}
    gpu = {"fgpu": template.fgpu, "gpu_kind": template.gpu_kind}
    requested_gpu = {key: value for key, value in gpu.items() if value is not None}
    return {"cpus": template.cpus, **sizes_text, **requested_gpu}


MAX_PLACE = 100_000


Place = Annotated[int, Field(ge=0, le=MAX_PLACE)]


Title = Annotated[str, Field(min_length=1, max_length=60), checked(_one_line), checked(_not_blank)]


Description = Annotated[str, Field(max_length=200), checked(_one_line)]


class Template(BaseModel):
    """Named resources, managed by administrators; memory in MiB, time in minutes."""

    model_config = _CHECKED

    name: Word
    title: Title
    description: Description = ""
    cpus: Annotated[int, Field(ge=1, le=4096)]
    memory_mb: Annotated[int, Field(ge=MIN_MEMORY_MB, le=MAX_MEMORY_MB)]
    shared_memory_mb: Annotated[int, Field(ge=1, le=MAX_MEMORY_MB)] | None = None
    fgpu: Fgpu | None = None
    gpu_kind: GpuKindName | None = None
    time_limit: Minutes | None = None
    resource_group: GroupName | None = None
    account: SlurmName | None = None
    qos: SlurmName | None = None
    reservation: SlurmName | None = None
    constraint: Constraint | None = None
    exclusive: bool = False
    place: Place = 0
    """Templates are sorted by place, then by name."""

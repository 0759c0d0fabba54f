"""What a researcher may ask for, parsed and checked once for every front end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from portal.core.environment import Variables
from portal.core.folders import Mounts
from portal.errors import FieldError, InvalidRequest

SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([mgt])(?:i?b)?", re.IGNORECASE | re.ASCII)
MIB = {"m": 1, "g": 1024, "t": 1024 * 1024}

MIN_MEMORY_MB = 256
"""Below this the gateway, the runner and one Jupyter server do not start at all."""
MAX_COUNT = 20
"""Sessions that one launch may make."""


def parse_size(value: object) -> int:
    """Turn a size such as "600m" or "1.5g" into whole MiB (binary units, as Slurm counts)."""
    if not isinstance(value, str) or not (match := SIZE.fullmatch(value.strip())):
        raise ValueError('write a size with its unit, for example "600m" or "2g"')
    return round(float(match[1]) * MIB[match[2].lower()])


def format_size(mb: int) -> str:
    """Write MiB the way parse_size reads it, in the largest unit that stays exact."""
    for unit in ("t", "g"):
        if mb and mb % MIB[unit] == 0:
            return f"{mb // MIB[unit]}{unit}"
    return f"{mb}m"


_SIZE_JSON = {"type": "string", "examples": ["600m", "2g"], "pattern": r"^[0-9.]+ ?[mgt]$"}
MAX_MEMORY_MB = 64 * 1024 * 1024
Memory = Annotated[
    int,
    BeforeValidator(parse_size),
    Field(ge=MIN_MEMORY_MB, le=MAX_MEMORY_MB),
    PlainSerializer(format_size, return_type=str),
    WithJsonSchema(_SIZE_JSON),
]
SharedMemory = Annotated[
    int,
    BeforeValidator(parse_size),
    Field(ge=1, le=MAX_MEMORY_MB),
    PlainSerializer(format_size, return_type=str),
    WithJsonSchema(_SIZE_JSON | {"description": "size of /dev/shm, a part of memory"}),
]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
SessionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]{4,64}$")]
# Inputs may be secrets: an error that gets into a log repeats none.
STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

Fgpu = Annotated[
    float,
    Field(gt=0, le=1024, allow_inf_nan=False, description="GPU, in the administrator's unit"),
]
GpuKindName = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$")]
"""Slurm's Type of a GPU; "" where GPUs have none."""


class Resources(BaseModel):
    """How much of one node a session gets; memory in MiB, `fgpu` rounded up to what is offered."""

    model_config = STRICT

    cpus: Annotated[int, Field(ge=1, le=4096)] = 1
    memory: Memory
    shared_memory: SharedMemory | None = None
    fgpu: Fgpu | None = None
    gpu_kind: GpuKindName | None = None

    @field_validator("gpu_kind")
    @classmethod
    def _how_much(cls, kind: str | None, info: ValidationInfo) -> str | None:
        if kind and "fgpu" in info.data and info.data["fgpu"] is None:
            raise PydanticCustomError("how_much", "say how much of it, too (fgpu)")
        return kind

    @field_validator("shared_memory")
    @classmethod
    def _inside_memory(cls, size: int | None, info: ValidationInfo) -> int | None:
        memory = info.data.get("memory")
        if size is not None and memory is not None and size > memory:
            raise PydanticCustomError(
                "shared_memory", "shared memory is part of the memory and cannot be more than it"
            )
        return size


class LaunchRequest(BaseModel):
    """One session that somebody asks for, or several alike; unknown keys are refused."""

    model_config = STRICT

    environment: Word
    version: Word | None = None
    name: SessionName | None = None
    resource_group: Word | None = None
    resources: Resources
    time_limit: Annotated[int, Field(ge=1, le=525_600, description="minutes")] | None = None
    count: Annotated[int, Field(ge=1, le=MAX_COUNT, description="how many; all or none")] = 1
    mounts: Mounts = ()
    env: Variables = {}

    @field_validator("count")
    @classmethod
    def _names_have_room(cls, count: int, info: ValidationInfo) -> int:
        name = info.data.get("name")
        if count > 1 and name is not None and len(f"{name}{count}") > 64:
            raise PydanticCustomError(
                "name_room", "the name is too long to have a number put behind it"
            )
        return count

    @field_validator("mounts")
    @classmethod
    def _each_once(cls, mounts: Mounts) -> Mounts:
        names = [mount.folder for mount in mounts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise PydanticCustomError("twice", "{name} is named twice", {"name": twice})
        return mounts


MOUNTS = "mounts"

# Our own words for what pydantic reports; the rest keep pydantic's text.
MESSAGES = {
    "missing": "this is needed",
    "extra_forbidden": "there is no such field",
    "int_type": "this must be a whole number",
    "string_type": "this must be text",
    "greater_than_equal": "this must be at least {ge}",
    "less_than_equal": "this must be at most {le}",
    "model_type": "this must be an object with its own fields",
    "model_attributes_type": "this must be an object with its own fields",
    "dict_type": "this must be an object of names and values",
    "tuple_type": "this must be a list",
    "bool_type": "this must be true or false",
    "too_long": "these are too many; there may be {max_length}",
}
FIELD_MESSAGES = {
    "name": "use 4 to 64 letters and digits, without spaces",
    "resources.fgpu": "write an amount above 0, for example 0.5",
    "resources.memory": f'write a size from {MIN_MEMORY_MB}m on, for example "600m" or "2g"',
}


def parse_launch(data: object) -> LaunchRequest:
    """Check untrusted input (decoded JSON or a form's fields).

    Raises InvalidRequest that names every wrong field.
    """
    if not isinstance(data, Mapping):
        raise InvalidRequest([FieldError("", "send an object with the fields of a session")])
    try:
        return LaunchRequest.model_validate(data)
    except ValidationError as error:
        raise InvalidRequest(field_errors(error)) from None


def field_errors(error: ValidationError) -> list[FieldError]:
    """Say in plain words which fields pydantic found wrong."""
    return [_field_error(dict(detail)) for detail in error.errors(include_url=False)]


def _field_error(detail: dict[str, Any]) -> FieldError:
    # A variable's wrong name is at ("env", name, "[key]"), and the name itself may be "[key]", too.
    # It may also be as long as the sender likes.
    place = detail["loc"][:2] if detail["loc"][2:] == ("[key]",) else detail["loc"]
    field = ".".join(str(part)[:128] for part in place)
    if len(place) > 2 and place[0] == MOUNTS:
        return _mount_error(detail)
    if detail["type"] not in ("missing", "extra_forbidden") and field in FIELD_MESSAGES:
        return FieldError(field, FIELD_MESSAGES[field])
    if detail["type"] == "string_pattern_mismatch":
        return FieldError(field, "use letters, digits, dots, dashes and underscores")
    if detail["type"] == "name_room":
        field = "name"
    if field == "resources.shared_memory" and detail["type"] != "shared_memory":
        return FieldError(field, 'write a size such as "64m" or "1g"')
    return FieldError(field, _message(detail))


def _mount_error(detail: dict[str, Any]) -> FieldError:
    """What is wrong with one mount is said of the mount as a whole, with its part named."""
    _, number, part = detail["loc"][:3]
    if part == "folder" and detail["type"] == "string_pattern_mismatch":
        message = "a folder's name is of letters, digits, dots, dashes and underscores"
    else:
        message = f"{str(part)[:128]}: {_message(detail)}"
    return FieldError(f"{MOUNTS}.{number}", message)


def _message(detail: dict[str, Any]) -> str:
    template = MESSAGES.get(detail["type"])
    if template is None:
        return str(detail["msg"])
    return template.format(**detail.get("ctx", {}))

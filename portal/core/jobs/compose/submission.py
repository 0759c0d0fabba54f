"""The request to submit a job: its fields, validated in one place for all front ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationInfo, WithJsonSchema, field_validator

from portal.core.jobs.compose.options import (
    MAX_WORDS,
    ONCE,
    check_arguments,
    check_directives,
    check_not_twice,
    check_options,
)
from portal.core.launch.mounts import Mounts
from portal.core.launch.request import Fgpu, GpuKindName, each_once, needs_amount
from portal.core.slurm_options import Constraint, GroupName, SlurmName
from portal.core.units import JobMemory, SharedMemory, TimeLimit
from portal.core.validation import BODY, STRICT, at_most, check, checked, wrong
from portal.errors import FieldError, InvalidRequest

MAX_SCRIPT = 512 * 1024
"""Bytes of a script."""
MAX_PATH = 4095
_TASKS = r"[0-9]{1,7}(-[0-9]{1,7}(:[0-9]{1,7})?)?"
_ARRAY = re.compile(rf"{_TASKS}(,{_TASKS})*(%[0-9]{{1,7}})?")
MAX_ARRAY = 500


def normal_script(text: str) -> str:
    """A script with Unix line ends, which sbatch requires; browsers send DOS line ends."""
    return text.replace("\r\n", "\n")


def script_problem(script: str) -> str:
    """Why sbatch would not accept a script, as a message for its author; "" if none is known."""
    if not script.strip():
        return "this must not be empty"
    if any("\ud800" <= character <= "\udfff" for character in script):
        return "this has characters that cannot be written as UTF-8"
    size = len(script.encode())
    if size > MAX_SCRIPT:
        return f"use up to {MAX_SCRIPT >> 10} KB; this has {-(-size // 1024)} KB"
    if "\0" in script:
        return "a script cannot contain NUL characters"
    if script.startswith("\ufeff"):
        return (
            "a byte-order mark (BOM) precedes the first line, so it does not begin with #!: save "
            "the script as UTF-8 without BOM"
        )
    if not script.startswith("#!"):
        return "begin the first line with #! and the program that runs the script: #!/bin/bash"
    if "\r\n" in script:
        return "lines end as in DOS; save it with Unix line ends"
    try:
        check_directives(script)
    except ValueError as error:
        return str(error)
    return ""


def _script(text: str) -> str:
    if problem := script_problem(text):
        raise ValueError(problem)
    return text


def _path(text: str) -> str:
    if not text.isprintable() or len(text.encode(errors="replace")) > MAX_PATH:
        raise ValueError(f"use up to {MAX_PATH} printable characters, in one line")
    if not (text.startswith(("/", "~/")) or text == "~"):
        raise ValueError("begin with / or, for your home directory, with ~/")
    return text


def script_path(text: str) -> str:
    """The path of a script; raises ValueError with a message for users."""
    if _path(text).endswith(("/", "~")):
        raise ValueError("name a file")
    return text


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > 200:
        raise ValueError("use 1 to 200 printable characters")
    return text


def _image(text: str) -> str:
    if not text or not text.isprintable() or len(text) > MAX_PATH or text.startswith("-"):
        raise ValueError(
            "write NAME, NAME/VERSION, the path of a .sif file, or docker://HOST/NAME:TAG"
        )
    return text


def _array(text: str) -> str:
    if len(text) > MAX_ARRAY or not _ARRAY.fullmatch(text):
        raise ValueError("write task numbers such as 0-19, 1,3,7 or 0-99%10 (ten at a time)")
    return text


class JobResources(BaseModel):
    """Resources of a job; missing values come from the script, else from Slurm's defaults."""

    model_config = STRICT

    nodes: Annotated[int, Field(ge=1, le=100_000)] | None = None
    tasks: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    cpus: Annotated[int, Field(ge=1, le=4096, description="cores of each task")] | None = None
    memory: JobMemory | None = None
    shared_memory: SharedMemory | None = None
    fgpu: Fgpu | None = None
    gpu_kind: GpuKindName | None = None

    _how_much = field_validator("gpu_kind")(needs_amount)


Words = Annotated[
    tuple[str, ...],
    Field(strict=False),
    at_most(MAX_WORDS),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "maxItems": MAX_WORDS}),
]
"""Words of a command line, each as one string."""


class JobRequest(BaseModel):
    """A job to submit; unknown keys are refused. Either a script or the path of one is required."""

    model_config = STRICT

    script: Annotated[str, checked(_script)] | None = None
    path: Annotated[str, checked(script_path)] | None = None
    args: Words = ()
    """The script's arguments."""
    name: Annotated[str, checked(_name)] | None = None
    image: Annotated[str, checked(_image)] | None = None
    resource_group: GroupName | None = None
    account: SlurmName | None = None
    qos: SlurmName | None = None
    reservation: SlurmName | None = None
    constraint: Constraint | None = None
    resources: JobResources = JobResources()
    time_limit: TimeLimit | None = None
    mounts: Mounts = ()
    directory: Annotated[str, checked(_path)] | None = None
    array: Annotated[str, checked(_array)] | None = None
    options: Words = ()

    @field_validator("path")
    @classmethod
    def _only_one(cls, path: str | None, info: ValidationInfo) -> str | None:
        if path is not None and info.data.get("script") is not None:
            raise wrong("send either a script or the path of one")
        return path

    @field_validator("args", "options")
    @classmethod
    def _are_words(cls, words: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        try:
            if info.field_name != "options":
                return check_arguments(words)
            options = check_options(words)
            check_not_twice(options, [name for name in ONCE if info.data.get(name)])
        except ValueError as error:
            raise wrong(str(error)) from None
        return options

    _each_once = field_validator("mounts")(each_once)


def to_body(request: JobRequest) -> dict[str, Any]:
    """The request as JSON for `parse_job`, without default values."""
    return request.model_dump(mode="json", exclude_defaults=True)


def parse_job(data: object) -> JobRequest:
    """Validate untrusted input (decoded JSON or a form's fields).

    Raises InvalidRequest that names the invalid fields.
    """
    if not isinstance(data, Mapping):
        raise InvalidRequest([FieldError(BODY, "send an object with the fields of a job")])
    missing = [FieldError("script", "this is needed: a script, or the path of one")]
    nothing = data.get("script") is None and data.get("path") is None
    try:
        request = check(JobRequest, data)
    except InvalidRequest as error:
        raise error.also(missing) if nothing else error from None
    if nothing:
        raise InvalidRequest(missing)
    return request

"""The launch request, parsed and validated in one place for every front end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from portal.core.launch.environment import Variables
from portal.core.launch.hub import HubServer
from portal.core.launch.mounts import Mounts, duplicate_mount_name
from portal.core.launch.names import MAX_NAME, MIN_NAME, session_name
from portal.core.launch.own_image import IMAGE, OWN, OwnImage
from portal.core.slurm_options import Constraint, GroupName, SlurmName, SlurmOptions, options_in
from portal.core.units import MIN_MEMORY_MB, Memory, SharedMemory, TimeLimit
from portal.core.validation import (
    BODY,
    STRICT,
    WORD,
    WORD_RULE,
    Matching,
    Word,
    at_field,
    check,
    checked,
    wrong,
)
from portal.errors import FieldError, InvalidRequest

MAX_COUNT = 20
"""Sessions per launch."""


SessionName = Annotated[
    str,
    checked(session_name),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": MIN_NAME,
            "maxLength": MAX_NAME,
            "description": "letters and digits of any script, no spaces; kept in Unicode's NFC",
        }
    ),
]

MAX_FGPU = 1024


def _amount(fgpu: float) -> float:
    if not fgpu > 0:  # also true for NaN
        raise wrong("write an amount above 0, for example 0.5")
    if fgpu > MAX_FGPU:
        raise wrong(f"this must be at most {MAX_FGPU}")
    return fgpu


Fgpu = Annotated[
    float,
    AfterValidator(_amount),
    WithJsonSchema(
        {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": MAX_FGPU,
            "description": "GPU, in the administrator's unit",
        }
    ),
]
GpuKindName = Annotated[str, Matching(f"({WORD})?", WORD_RULE)]
"""Slurm's Type of a GPU; "" if GPUs have none."""


def needs_amount(kind: str | None, info: ValidationInfo) -> str | None:
    """Validator of a GPU's kind: its amount must be set as well."""
    if kind and "fgpu" in info.data and info.data["fgpu"] is None:
        raise wrong("also set how much of it (fgpu)")
    return kind


def each_once(mounts: Mounts) -> Mounts:
    """Validator of mounts: no folder may be named twice."""
    names = [mount.folder for mount in mounts]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise wrong(f"the folder {duplicate} is named twice")
    return mounts


def _distinct_names(mounts: Mounts) -> Mounts:
    if duplicate := duplicate_mount_name(mounts):
        raise wrong(f"two of these folders would be ~/{duplicate}; choose one of them")
    return mounts


class Resources(BaseModel):
    """Resources of a session on one node; memory in MiB, `fgpu` rounded up to an offered amount."""

    model_config = STRICT

    cpus: Annotated[int, Field(ge=1, le=4096)] = 1
    memory: Memory
    shared_memory: SharedMemory | None = None
    fgpu: Fgpu | None = None
    gpu_kind: GpuKindName | None = None

    _how_much = field_validator("gpu_kind")(needs_amount)

    @field_validator("shared_memory")
    @classmethod
    def _inside_memory(cls, size: int | None, info: ValidationInfo) -> int | None:
        memory = info.data.get("memory")
        if size is not None and memory is not None and size > memory:
            raise wrong("shared memory is part of the memory and cannot be more than it")
        return size


class LaunchRequest(BaseModel):
    """A request for one session, or several identical ones; unknown keys are refused."""

    model_config = STRICT

    environment: Word = OWN
    version: Word | None = None
    image: Annotated[OwnImage | None, Field(validate_default=True)] = None
    """The user's own image, instead of environment and version."""
    name: SessionName | None = None
    resource_group: GroupName | None = None
    account: SlurmName | None = None
    qos: SlurmName | None = None
    reservation: SlurmName | None = None
    constraint: Constraint | None = None
    """Features of nodes, as in sbatch's --constraint."""
    exclusive: bool = False
    """The whole node, without other users' jobs; false overrides a template."""
    resources: Resources
    time_limit: TimeLimit | None = None
    count: Annotated[int, Field(ge=1, le=MAX_COUNT, description="how many; all or none")] = 1
    mounts: Mounts = ()
    env: Variables = {}
    hub: HubServer | None = None
    """Set by JupyterHub only: its server in this session."""

    @field_validator("image")
    @classmethod
    def _either(cls, image: str | None, info: ValidationInfo) -> str | None:
        environment = info.data.get("environment")
        if image is None and environment == OWN:
            raise at_field("environment", "this is needed")
        if image is not None and (environment not in (None, OWN) or info.data.get("version")):
            raise wrong("choose an environment or an image of your own, not both")
        return image

    @field_validator("hub")
    @classmethod
    def _only_one(cls, hub: HubServer | None, info: ValidationInfo) -> HubServer | None:
        if hub is not None and info.data.get("count", 1) > 1:
            raise at_field("count", "JupyterHub starts one session at a time")
        return hub

    @field_validator("count")
    @classmethod
    def _names_have_room(cls, count: int, info: ValidationInfo) -> int:
        name = info.data.get("name")
        if count > 1 and name is not None and len(f"{name}{count}") > MAX_NAME:
            raise at_field("name", "the name is too long to append a number")
        return count

    @property
    def slurm(self) -> SlurmOptions:
        """The choices among Slurm's own options."""
        return options_in(self)

    _each_once = field_validator("mounts")(each_once)
    _each_named_differently = field_validator("mounts")(_distinct_names)


def without(data: object, errors: Iterable[FieldError]) -> LaunchRequest | None:
    """Parse a request without its wrong fields, using defaults, to check the remaining ones.

    None if the remaining fields cannot be checked.
    """
    if not isinstance(data, Mapping):
        return None
    names = {error.field for error in errors}
    tops = {name.partition(".")[0] for name in names}
    body = {name: value for name, value in data.items() if name not in tops - {"resources"}}
    resources = data.get("resources")
    if isinstance(resources, Mapping):
        remaining = {
            name: value for name, value in resources.items() if f"resources.{name}" not in names
        }
        body["resources"] = {"memory": f"{MIN_MEMORY_MB}m"} | remaining
    try:
        defaults = {} if IMAGE in body else {"environment": "any"}
        return parse_launch(defaults | body)
    except InvalidRequest:
        return None


def parse_launch(data: object) -> LaunchRequest:
    """Validate untrusted input (decoded JSON or a form's fields).

    Raises InvalidRequest that names the wrong fields.
    """
    if not isinstance(data, Mapping):
        raise InvalidRequest([FieldError(BODY, "send an object with the fields of a session")])
    return check(LaunchRequest, data)

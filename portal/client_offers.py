"""Choices for a user's requests, as parsed by the client of the REST API."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ResponsePart(BaseModel):
    """Part of a response; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class AppTitle(ResponsePart):
    """An app that an image can run."""

    name: str


class Version(ResponsePart):
    """One version of an environment."""

    version: str
    title: str
    apps: tuple[AppTitle, ...] = ()


class Environment(ResponsePart):
    """An environment with its versions, newest first."""

    name: str
    title: str
    versions: tuple[Version, ...]


class GpuAmount(ResponsePart):
    """An amount of a GPU that can be requested."""

    fgpu: float


class GpuOffer(ResponsePart):
    """One type of GPU."""

    kind: str
    title: str
    amounts: tuple[GpuAmount, ...]


class ResourceGroup(ResponsePart):
    """A partition with the user's limits; times in minutes."""

    name: str
    default: bool
    max_cpus: int
    max_memory: str
    max_time_limit: int | None = None
    default_time_limit: int | None = None
    gpus: tuple[GpuOffer, ...] = ()


class Option(ResponsePart):
    """An account, a QOS or a reservation."""

    name: str
    title: str = ""
    note: str = ""
    default: bool = False


class Choice(ResponsePart):
    """The choices among Slurm's own options, depending on those chosen already."""

    accounts: tuple[Option, ...] = ()
    qos: tuple[Option, ...] = ()
    reservations: tuple[Option, ...] = ()


class Template(ResponsePart):
    """A resource template, and whether the user's limits allow it."""

    name: str
    title: str
    description: str = ""
    fits: bool
    why: str = ""


class Folder(ResponsePart):
    """A folder that can be mounted."""

    name: str
    path: str
    mountable: bool


class Offers(ResponsePart):
    """All choices for a user's requests."""

    environments: tuple[Environment, ...]
    resource_groups: tuple[ResourceGroup, ...]
    templates: tuple[Template, ...]
    folders: tuple[Folder, ...]
    choice: Choice = Choice()

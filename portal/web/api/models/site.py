"""Answers about what the site offers, and about the caller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from portal.core.apps.catalog import AppSpec, Image
from portal.core.auth.person import Person
from portal.core.cluster.effective_limits import UserPartition
from portal.core.cluster.fgpu import Slice, to_number
from portal.core.cluster.gpu_offers import GpuOffer
from portal.core.cluster.usage import Meter, PartitionUsage
from portal.core.launch.mounts import Folder
from portal.core.units import format_size
from portal.web.api.models.base import Answer, optional_size


class AppTitleOut(Answer):
    """An app that an image can run."""

    name: str
    title: str


class VersionOut(Answer):
    """One version of an environment."""

    version: str
    title: str
    description: str
    default_app: str | None
    seen_by: str = ""
    """Who sees it; for administrators only."""
    apps: list[AppTitleOut]

    @classmethod
    def of(cls, image: Image, apps: Iterable[AppSpec], seen_by: str | None = None) -> VersionOut:
        """Build it; `seen_by` is left out where it is None."""
        mark = {} if seen_by is None else {"seen_by": seen_by}
        return cls(
            version=image.version,
            title=image.title,
            description=image.description,
            default_app=image.default_app,
            apps=[AppTitleOut(name=app.name, title=app.title) for app in apps],
            **mark,
        )


class EnvironmentOut(Answer):
    """An environment with its versions, newest first."""

    name: str
    versions: list[VersionOut]


class EnvironmentListOut(Answer):
    """The environments that the caller may launch."""

    environments: list[EnvironmentOut]


class BoundsOut(Answer):
    """For each resource, whose limit bounds it, in words."""

    cpus: str
    memory: str
    time: str = ""
    """Left out where the time is not limited."""

    @classmethod
    def of(cls, partition: UserPartition) -> BoundsOut:
        """Build it."""
        why = partition.why
        time = {"time": why["time"]} if "time" in why else {}
        return cls(cpus=why.get("cpus", ""), memory=why.get("memory", ""), **time)


class GpuAmountOut(Answer):
    """An amount of a GPU that may be asked for."""

    fgpu: float
    memory: str
    sm_percent: int
    """Share of a GPU's multiprocessors, in percent."""

    @classmethod
    def of(cls, amount: Slice) -> GpuAmountOut:
        """Build it."""
        return cls(
            fgpu=to_number(amount.fgpu),
            memory=format_size(amount.memory_mb),
            sm_percent=amount.sm_percent,
        )


class GpuOfferOut(Answer):
    """One type of GPU in a resource group, and how much of it may be asked for."""

    kind: str
    """The value of gpu_kind; empty where GPUs have no types."""
    title: str
    max_fgpu: float
    bounded_by: str
    amounts: list[GpuAmountOut]
    """Smallest first."""

    @classmethod
    def of(cls, offer: GpuOffer) -> GpuOfferOut:
        """Build it."""
        return cls(
            kind=offer.kind.name,
            title=offer.kind.title,
            max_fgpu=to_number(offer.amounts[-1].fgpu),
            bounded_by=offer.why,
            amounts=[GpuAmountOut.of(amount) for amount in offer.amounts],
        )


class ResourceGroupOut(Answer):
    """A partition with the caller's own bounds."""

    name: str
    default: bool
    open: bool
    """Whether it takes jobs at present."""
    max_cpus: int
    max_memory: str
    max_time_limit: int | None
    """Minutes."""
    max_running: int | None
    """Sessions that the caller may run at once."""
    max_shared_memory: str | None
    """The administrators' cap."""
    bounded_by: BoundsOut
    gpus: list[GpuOfferOut]

    @classmethod
    def of(
        cls, partition: UserPartition, offers: Sequence[GpuOffer], shared_memory_cap_mb: int | None
    ) -> ResourceGroupOut:
        """Build it."""
        return cls(
            name=partition.name,
            default=partition.default,
            open=partition.up,
            max_cpus=partition.max_cpus,
            max_memory=format_size(partition.max_memory_mb),
            max_time_limit=partition.max_minutes,
            max_running=partition.max_jobs,
            max_shared_memory=optional_size(shared_memory_cap_mb),
            bounded_by=BoundsOut.of(partition),
            gpus=[GpuOfferOut.of(offer) for offer in offers],
        )


class ResourceGroupListOut(Answer):
    """The partitions that are open to the caller."""

    resource_groups: list[ResourceGroupOut]


class CoreMeterOut(Answer):
    """Cores."""

    mine: int
    allowed: int | None
    """The most that the caller may hold; null while it is not known."""
    available: int | None
    """How many more the caller could have at this moment."""


class MemoryMeterOut(Answer):
    """Memory."""

    mine: str
    allowed: str | None
    """The most that the caller may hold; null while it is not known."""
    available: str | None
    """How much more the caller could have at this moment."""

    @classmethod
    def of(cls, meter: Meter[int]) -> MemoryMeterOut:
        """Build it."""
        return cls(
            mine=format_size(meter.mine),
            allowed=optional_size(meter.allowed),
            available=optional_size(meter.available),
        )


class GpuMeterOut(Answer):
    """GPUs, in fGPU."""

    mine: float
    allowed: float | None
    """The most that the caller may hold; null while it is not known."""
    available: float | None
    """How much more the caller could have at this moment."""


class UsageOut(Answer):
    """What the caller holds in a resource group, may hold there, and could have at once."""

    resource_group: str
    cpus: CoreMeterOut
    memory: MemoryMeterOut
    fgpu: GpuMeterOut | None

    @classmethod
    def of(cls, usage: PartitionUsage) -> UsageOut:
        """Build it."""
        return cls(
            resource_group=usage.group,
            cpus=CoreMeterOut.model_validate(usage.cpus),
            memory=MemoryMeterOut.of(usage.memory),
            fgpu=GpuMeterOut.model_validate(usage.fgpu) if usage.fgpu else None,
        )


class MeOut(Answer):
    """Whom the token stands for."""

    name: str
    admin: bool

    @classmethod
    def of(cls, person: Person) -> MeOut:
        """Build it."""
        return cls(name=person.name, admin=person.admin)


class FolderOut(Answer):
    """A folder that outlives sessions."""

    name: str
    """"home", or the name of a storage folder."""
    path: str
    """Where it is on the cluster's file system."""
    mountable: bool

    @classmethod
    def of(cls, folder: Folder) -> FolderOut:
        """Build it."""
        return cls.model_validate(folder)


class FolderListOut(Answer):
    """What can be mounted."""

    folders: list[FolderOut]

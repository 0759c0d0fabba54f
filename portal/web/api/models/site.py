"""Response models for the site's offers, and for the caller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from portal.core.apps.catalog import AppSpec, Image
from portal.core.auth.person import Person
from portal.core.cluster.effective_limits import UserPartition
from portal.core.cluster.gpu_offers import GpuOffer
from portal.core.cluster.meters import Meter, PartitionUsage
from portal.core.launch.mounts import Folder
from portal.core.units import format_size
from portal.node.common.fgpu import Slice, to_number
from portal.web.api.models.base import ResponseModel, optional_size


class AppTitleOut(ResponseModel):
    """An app that an image can run."""

    name: str
    title: str


class VersionOut(ResponseModel):
    """One version of an environment."""

    version: str
    title: str
    label: str
    """The version's name beside the environment's title."""
    description: str
    default_app: str | None
    seen_by: str = ""
    """Its visibility; for administrators only."""
    apps: list[AppTitleOut]

    @classmethod
    def of(
        cls, image: Image, label: str, apps: Iterable[AppSpec], seen_by: str | None = None
    ) -> VersionOut:
        """Build it; `seen_by` is omitted if None."""
        optional = {} if seen_by is None else {"seen_by": seen_by}
        return cls(
            version=image.version,
            title=image.title,
            label=label,
            description=image.description,
            default_app=image.default_app,
            apps=[AppTitleOut(name=app.name, title=app.title) for app in apps],
            **optional,
        )


class EnvironmentOut(ResponseModel):
    """An environment with its versions, newest first."""

    name: str
    title: str
    """Its name on pages."""
    versions: list[VersionOut]


class EnvironmentListOut(ResponseModel):
    """The environments that the caller may launch."""

    environments: list[EnvironmentOut]


class BoundsOut(ResponseModel):
    """The origin of each resource's limit, in plain words."""

    cpus: str
    memory: str
    time: str = ""
    """Omitted if the time is not limited."""

    @classmethod
    def of(cls, partition: UserPartition) -> BoundsOut:
        """Build it."""
        why = partition.why
        time = {"time": why["time"]} if "time" in why else {}
        return cls(cpus=why.get("cpus", ""), memory=why.get("memory", ""), **time)


class GpuAmountOut(ResponseModel):
    """An amount of a GPU that can be requested."""

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


class GpuOfferOut(ResponseModel):
    """One type of GPU in a resource group, and the amounts that can be requested."""

    kind: str
    """The value of gpu_kind; empty if GPUs have no types."""
    title: str
    max_fgpu: float
    bounded_by: str
    amounts: list[GpuAmountOut]
    """In ascending order."""

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


class ResourceGroupOut(ResponseModel):
    """A partition with the caller's limits."""

    name: str
    default: bool
    open: bool
    """Whether it currently accepts jobs."""
    max_cpus: int
    max_memory: str
    max_time_limit: int | None
    """Minutes."""
    default_time_limit: int | None
    """Minutes by default; null if unlimited or not known yet."""
    max_running: int | None
    """Sessions that the caller may run at the same time."""
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
            default_time_limit=partition.default_minutes,
            max_running=partition.max_jobs,
            max_shared_memory=optional_size(shared_memory_cap_mb),
            bounded_by=BoundsOut.of(partition),
            gpus=[GpuOfferOut.of(offer) for offer in offers],
        )


class ResourceGroupListOut(ResponseModel):
    """The partitions that are open to the caller."""

    resource_groups: list[ResourceGroupOut]


class CoreMeterOut(ResponseModel):
    """Cores."""

    mine: int
    allowed: int | None
    """The most that the caller may hold; null while unknown."""
    available: int | None
    """The number of further cores that the caller could get right now."""
    elsewhere: int
    """The amount that the caller holds in other groups and therefore cannot get here."""
    others: int
    """The part of the caller's limit that other users hold."""


class MemoryMeterOut(ResponseModel):
    """Memory."""

    mine: str
    allowed: str | None
    """The most that the caller may hold; null while unknown."""
    available: str | None
    """The further amount that the caller could get right now."""
    elsewhere: str
    """The amount that the caller holds in other groups and therefore cannot get here."""
    others: str
    """The part of the caller's limit that other users hold."""

    @classmethod
    def of(cls, meter: Meter[int]) -> MemoryMeterOut:
        """Build it."""
        return cls(
            mine=format_size(meter.mine),
            allowed=optional_size(meter.allowed),
            available=optional_size(meter.available),
            elsewhere=format_size(int(meter.elsewhere)),
            others=format_size(int(meter.others)),
        )


class GpuMeterOut(ResponseModel):
    """GPUs, in fGPU."""

    mine: float
    allowed: float | None
    """The most that the caller may hold; null while unknown."""
    available: float | None
    """The further amount that the caller could get right now."""
    elsewhere: float
    """The amount that the caller holds in other groups and therefore cannot get here."""
    others: float
    """The part of the caller's limit that other users hold."""


class UsageOut(ResponseModel):
    """The caller's usage and limits in a resource group, and the resources free for them now."""

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


class MeOut(ResponseModel):
    """The user that the token belongs to."""

    name: str
    admin: bool

    @classmethod
    def of(cls, person: Person) -> MeOut:
        """Build it."""
        return cls(name=person.name, admin=person.admin)


class FolderOut(ResponseModel):
    """A persistent folder."""

    name: str
    """"home", the name of a storage folder, or OWNER/FOLDER for one that another user shares."""
    path: str
    """Its path on the cluster's file system."""
    mountable: bool
    problem: str
    """Why it cannot be mounted; "" if it can."""
    owner: str
    """Its owner if it is shared; "" for the caller's own."""
    read_only: bool
    """Whether it can only be mounted read-only."""

    @classmethod
    def of(cls, folder: Folder) -> FolderOut:
        """Build it."""
        return cls.model_validate(folder)


class FolderListOut(ResponseModel):
    """The folders that can be mounted."""

    folders: list[FolderOut]

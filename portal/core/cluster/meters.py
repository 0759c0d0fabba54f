"""The usage bars: what a user holds in a resource group, may hold there, and could get now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from portal.core.cluster.effective_limits import group_limits, partitions_for
from portal.core.cluster.gpu_usage import GpuCapacity
from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import GroupLimit, Limits, Tres, UserLimits, user_limits
from portal.core.cluster.usage import ClusterUsage, Overlap, counted, held_by
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions
from portal.core.units import floor_size, format_cores

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Meter(Generic[Number]):
    """One resource of one user in one group: cores, MiB of memory, or fGPU."""

    mine: Number
    allowed: Number | None
    """The most that this user may hold in this group; None while unknown."""
    available: Number | None
    """How much more this user could get right now."""
    elsewhere: Number | float = 0
    """What the user holds in other groups and therefore cannot get here."""

    @property
    def upper(self) -> float | None:
        """The user's share of what they may hold in this group, in percent."""
        return _percent(self.mine, self.allowed)

    @property
    def lower(self) -> float | None:
        """The user's share of what they hold and could still get in this group, in percent."""
        return _percent(self.mine, None if self.available is None else self.mine + self.available)

    @property
    def others(self) -> float:
        """What the user may hold here and cannot get now, since others have it."""
        if self.allowed is None or self.available is None:
            return 0
        return max(round(self.allowed - self.mine - self.available - self.elsewhere, 3), 0)

    @property
    def whole(self) -> float:
        """The length of the bar: all parts together."""
        return self.mine + self.elsewhere + (self.available or 0) + self.others


def _percent(part: float, whole: float | None) -> float | None:
    if whole is None:
        return None
    return min(100.0 * part / whole, 100.0) if whole else 0.0


@dataclass(frozen=True)
class _Constraint(Generic[Number]):
    """Something that bounds what a user may hold: a limit, or the nodes of the group."""

    most: Number
    left: Number
    """How much of it nobody holds."""
    elsewhere: float
    """How much of it the user holds in other groups."""


def usage_meters(
    user: str,
    partition: str,
    limits: Limits | None,
    use: ClusterUsage,
    options: SlurmOptions = NO_OPTIONS,
) -> tuple[Meter[int], Meter[int], Meter[float] | None]:
    """One user's cores, memory and fGPU in one partition; the last None if it has no GPUs."""
    own = user_limits(user, partition, limits, options) if limits else None
    found = [_Total.of(total, user, partition, use) for total in (group_limits(own) if own else ())]
    room = next((room for room in use.rooms if room.partition == partition), None)
    here = GroupLimit(Tres(), "", user, partitions=frozenset({partition}))
    mine = held_by(use, here)
    fgpu = sum(holding.fgpu for holding in counted(use, here))
    beside = next(
        (one for one in use.overlaps if (one.user, one.partition) == (user, partition)),
        Overlap(user, partition, 0, 0),
    )
    return (
        _meter(
            mine.cpus or 0,
            [
                *_limited(found, lambda amount: amount.cpus),
                *([_Constraint(room.cpus, room.free_cpus, beside.cpus)] if room else ()),
            ],
        ),
        _meter(
            mine.memory_mb or 0,
            [
                *_limited(found, lambda amount: amount.memory_mb),
                *(
                    [_Constraint(room.memory_mb, room.free_memory_mb, beside.memory_mb)]
                    if room
                    else ()
                ),
            ],
        ),
        _fgpu_meter(fgpu, room.gpus, found, beside.fgpu) if room and room.gpus else None,
    )


@dataclass(frozen=True)
class _Total:
    """A group limit, what all hold under it, and what the user holds under it in other groups."""

    most: Tres
    held: Tres
    elsewhere: Tres

    @classmethod
    def of(cls, total: GroupLimit, user: str, partition: str, use: ClusterUsage) -> _Total:
        beside = ClusterUsage(
            tuple(h for h in use.holdings if h.user == user and h.partition != partition)
        )
        return cls(total.amount, held_by(use, total), held_by(beside, total))


def _limited(
    totals: Iterable[_Total], pick: Callable[[Tres], int | None]
) -> list[_Constraint[int]]:
    return [
        _Constraint(most, most - (pick(total.held) or 0), pick(total.elsewhere) or 0)
        for total in totals
        if (most := pick(total.most)) is not None
    ]


def _meter(mine: Number, constraints: Sequence[_Constraint[Number]]) -> Meter[Number]:
    if not constraints:
        return Meter(mine, None, None)
    allowed = min(one.most for one in constraints)
    tightest = min(constraints, key=lambda one: (one.left, -one.elsewhere))
    available = max(tightest.left, type(mine)(0))
    gap = max(allowed - mine - available, 0)
    return Meter(mine, allowed, available, min(type(mine)(tightest.elsewhere), gap))


def _fgpu_meter(
    mine: float, rooms: Sequence[GpuCapacity], totals: Sequence[_Total], beside: float
) -> Meter[float]:
    """Slurm limits shards and whole GPUs separately; a user may hold both.

    If the shards of several kinds differ in size, the largest size counts: it gives the most that
    can be held within the limit.
    """
    shard = max(room.shard for room in rooms)
    gpu = max((room.gpu for room in rooms if not room.shard or room.most > 1), default=0.0)
    units: list[tuple[float, Callable[[Tres], int | None]]] = [
        (shard, lambda amount: amount.shards),
        (gpu, lambda amount: amount.gpus),
    ]
    most, left, elsewhere = 0.0, 0.0, 0.0
    for size_of_one, pick in units:
        bound = _meter(0, _limited(totals, pick))
        if size_of_one:  # one of the two without a limit means no limit
            most += math.inf if bound.allowed is None else size_of_one * bound.allowed
            left += math.inf if bound.available is None else size_of_one * bound.available
            elsewhere += size_of_one * bound.elsewhere
    nodes = _Constraint(sum(room.fgpu for room in rooms), sum(room.free for room in rooms), beside)
    found = _meter(float(mine), [_Constraint(most, left, elsewhere), nodes])
    allowed, available = found.allowed or 0.0, found.available or 0.0
    return Meter(round(mine, 3), round(allowed, 3), round(available, 3), round(found.elsewhere, 3))


@dataclass(frozen=True)
class PartitionUsage:
    """The usage bars of one user in one group, with the names of all groups they may use."""

    group: str
    groups: tuple[str, ...]
    cpus: Meter[int]
    memory: Meter[int]
    fgpu: Meter[float] | None
    """None if the group has no GPUs."""
    notes: tuple[str, ...] = ()
    """What bounds these amounts, in sentences."""


def partition_usage(
    user: str,
    wanted: str | None,
    partitions: Sequence[Partition],
    limits: Limits | None,
    use: ClusterUsage,
    options: SlurmOptions = NO_OPTIONS,
) -> PartitionUsage | None:
    """The bars of the wanted group, else of the default; None if the user may not use it."""
    groups = partitions_for(user, partitions, limits, options)
    if wanted is None:
        group = next((g for g in groups if g.default), groups[0] if groups else None)
    else:
        group = next((g for g in groups if g.name == wanted), None)
    if group is None:
        return None
    raw = next(partition for partition in partitions if partition.name == group.name)
    return PartitionUsage(
        group.name,
        tuple(g.name for g in groups),
        *usage_meters(user, group.name, limits, use, options),
        notes=tuple(_notes(user, raw, limits, options)),
    )


def _notes(
    user: str, partition: Partition, limits: Limits | None, options: SlurmOptions
) -> Iterable[str]:
    own = user_limits(user, partition.name, limits, options) if limits else None
    for total in group_limits(own) if own else ():
        if amount := _amount(total.amount):
            yield f"{_who(total, own)} may use {amount} at once{_where(total)}."
    largest = f"{format_cores(partition.max_cpus)} and {floor_size(partition.max_memory_mb)}"
    yield f"The largest node in {partition.name} has {largest}."


def _amount(most: Tres) -> str:
    parts = [
        *([format_cores(most.cpus)] if most.cpus is not None else ()),
        *([floor_size(most.memory_mb)] if most.memory_mb is not None else ()),
    ]
    return " and ".join(parts)


def _who(total: GroupLimit, own: UserLimits | None) -> str:
    if total.user is not None:
        return "You"
    if total.accounts is None:
        return "Everybody together"
    return f"Account {own.association.account}" if own and own.association else "Your account"


def _where(total: GroupLimit) -> str:
    if total.partitions is None:
        return " in all groups together"
    names = sorted(total.partitions)
    return f" in {names[0]}" if len(names) == 1 else f" in {', '.join(names)} together"

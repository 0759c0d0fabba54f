"""The usage bars: a user's allocation in a resource group, its limit, and the part still free."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from portal.core.cluster.effective_limits import UserPartition, group_limits, partitions_for
from portal.core.cluster.gpu_usage import GpuCapacity
from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import GroupLimit, Limits, Tres, UserLimits, user_limits
from portal.core.cluster.usage import ClusterUsage, allocated_under, allocations_under
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
    """The user's allocation in other groups that counts against this limit."""

    @property
    def upper(self) -> float | None:
        """The user's allocation as percent of the limit in this group."""
        return _percent(self.mine, self.allowed)

    @property
    def lower(self) -> float | None:
        """The user's allocation as percent of itself and the available amount together."""
        return _percent(self.mine, None if self.available is None else self.mine + self.available)

    @property
    def others(self) -> float:
        """The part within the limit that is not available now, since other users hold it."""
        if self.allowed is None or self.available is None:
            return 0
        return max(round(self.allowed - self.mine - self.available - self.elsewhere, 3), 0)

    @property
    def total(self) -> float:
        """The length of the bar: all parts together."""
        return self.mine + self.elsewhere + (self.available or 0) + self.others


def _percent(part: float, total: float | None) -> float | None:
    if total is None:
        return None
    return min(100.0 * part / total, 100.0) if total else 0.0


@dataclass(frozen=True)
class _Constraint(Generic[Number]):
    """A bound on a user's allocation: a limit, or the nodes of the group."""

    most: Number
    left: Number
    """The part that is not allocated."""
    elsewhere: float
    """The user's allocation of it in other groups."""


def usage_meters(
    user: str,
    partition: str,
    limits: Limits | None,
    use: ClusterUsage,
    options: SlurmOptions = NO_OPTIONS,
) -> tuple[Meter[int], Meter[int], Meter[float] | None]:
    """One user's cores, memory and fGPU in one partition; the last None if it has no GPUs."""
    effective = user_limits(user, partition, limits, options) if limits else None
    limit_uses = [
        _LimitUse.of(limit, user, partition, use)
        for limit in (group_limits(effective) if effective else ())
    ]
    nodes = next((capacity for capacity in use.rooms if capacity.partition == partition), None)
    in_partition = GroupLimit(Tres(), "", user, partitions=frozenset({partition}))
    mine = allocated_under(use, in_partition)
    fgpu = sum(holding.fgpu for holding in allocations_under(use, in_partition))
    overlap = use.overlap_of(user, partition)
    return (
        _meter(
            mine.cpus or 0,
            [
                *_limited(limit_uses, lambda amount: amount.cpus),
                *([_Constraint(nodes.cpus, nodes.free_cpus, overlap.cpus)] if nodes else ()),
            ],
        ),
        _meter(
            mine.memory_mb or 0,
            [
                *_limited(limit_uses, lambda amount: amount.memory_mb),
                *(
                    [_Constraint(nodes.memory_mb, nodes.free_memory_mb, overlap.memory_mb)]
                    if nodes
                    else ()
                ),
            ],
        ),
        _fgpu_meter(fgpu, nodes.gpus, limit_uses, overlap.fgpu) if nodes and nodes.gpus else None,
    )


@dataclass(frozen=True)
class _LimitUse:
    """A group limit, the allocation that it counts, and the user's part of that in other groups."""

    most: Tres
    allocated: Tres
    elsewhere: Tres

    @classmethod
    def of(cls, limit: GroupLimit, user: str, partition: str, use: ClusterUsage) -> _LimitUse:
        elsewhere = ClusterUsage(
            tuple(held for held in use.held_by(user) if held.partition != partition)
        )
        return cls(limit.amount, allocated_under(use, limit), allocated_under(elsewhere, limit))


def _limited(
    limit_uses: Iterable[_LimitUse], pick: Callable[[Tres], int | None]
) -> list[_Constraint[int]]:
    return [
        _Constraint(most, most - (pick(use.allocated) or 0), pick(use.elsewhere) or 0)
        for use in limit_uses
        if (most := pick(use.most)) is not None
    ]


def _meter(mine: Number, constraints: Sequence[_Constraint[Number]]) -> Meter[Number]:
    if not constraints:
        return Meter(mine, None, None)
    allowed = min(constraint.most for constraint in constraints)
    tightest = min(constraints, key=lambda constraint: (constraint.left, -constraint.elsewhere))
    available = max(tightest.left, type(mine)(0))
    gap = max(allowed - mine - available, 0)
    return Meter(mine, allowed, available, min(type(mine)(tightest.elsewhere), gap))


def _fgpu_meter(
    mine: float, gpus: Sequence[GpuCapacity], limit_uses: Sequence[_LimitUse], overlap: float
) -> Meter[float]:
    """The fGPU meter: Slurm limits shards and whole GPUs separately, and a user may hold both.

    If the shards of several kinds differ in size, the largest size counts: it gives the largest
    amount within the limit.
    """
    shard = max(capacity.shard for capacity in gpus)
    gpu = max(
        (capacity.gpu for capacity in gpus if not capacity.shard or capacity.most > 1), default=0.0
    )
    units: list[tuple[float, Callable[[Tres], int | None]]] = [
        (shard, lambda amount: amount.shards),
        (gpu, lambda amount: amount.gpus),
    ]
    most, left, elsewhere = 0.0, 0.0, 0.0
    for size_of_one, pick in units:
        bound = _meter(0, _limited(limit_uses, pick))
        if size_of_one:  # one of the two without a limit means no limit
            most += math.inf if bound.allowed is None else size_of_one * bound.allowed
            left += math.inf if bound.available is None else size_of_one * bound.available
            elsewhere += size_of_one * bound.elsewhere
    nodes = _Constraint(
        sum(capacity.fgpu for capacity in gpus), sum(capacity.free for capacity in gpus), overlap
    )
    meter = _meter(float(mine), [_Constraint(most, left, elsewhere), nodes])
    allowed, available = meter.allowed or 0.0, meter.available or 0.0
    return Meter(round(mine, 3), round(allowed, 3), round(available, 3), round(meter.elsewhere, 3))


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
    """The bounds on these amounts, in sentences."""


def partition_usage(
    user: str,
    name: str | None,
    partitions: Sequence[Partition],
    limits: Limits | None,
    use: ClusterUsage,
    options: SlurmOptions = NO_OPTIONS,
    usable: Sequence[UserPartition] | None = None,
) -> PartitionUsage | None:
    """The bars of the named group, else of the default; None if the user may not use it.

    `usable`: the partitions that the user may use with these options, where they are known.
    """
    groups = partitions_for(user, partitions, limits, options) if usable is None else usable
    if name is None:
        group = next((g for g in groups if g.default), groups[0] if groups else None)
    else:
        group = next((g for g in groups if g.name == name), None)
    if group is None:
        return None
    partition = next(p for p in partitions if p.name == group.name)
    return PartitionUsage(
        group.name,
        tuple(g.name for g in groups),
        *usage_meters(user, group.name, limits, use, options),
        notes=tuple(_notes(user, partition, limits, options)),
    )


def _notes(
    user: str, partition: Partition, limits: Limits | None, options: SlurmOptions
) -> Iterable[str]:
    effective = user_limits(user, partition.name, limits, options) if limits else None
    for limit in group_limits(effective) if effective else ():
        if amount := _amount(limit.amount):
            yield f"{_subject(limit, effective)} may use {amount} at once{_where(limit)}."
    largest = f"{format_cores(partition.max_cpus)} and {floor_size(partition.max_memory_mb)}"
    yield f"The largest node in {partition.name} has {largest}."


def _amount(most: Tres) -> str:
    parts = [
        *([format_cores(most.cpus)] if most.cpus is not None else ()),
        *([floor_size(most.memory_mb)] if most.memory_mb is not None else ()),
    ]
    return " and ".join(parts)


def _subject(limit: GroupLimit, effective: UserLimits | None) -> str:
    if limit.user is not None:
        return "You"
    if limit.accounts is None:
        return "Everybody together"
    return (
        f"Account {effective.association.account}"
        if effective and effective.association
        else "Your account"
    )


def _where(limit: GroupLimit) -> str:
    if limit.partitions is None:
        return " in all groups together"
    names = sorted(limit.partitions)
    return f" in {names[0]}" if len(names) == 1 else f" in {', '.join(names)} together"

"""Current use of the cluster, and the usage bars.

All values come from one poll of Slurm's queue and nodes; there are no running counters that could
drift. A job holds its allocation from its start until its last node has completed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Generic, TypeVar

from portal.core.cluster.effective_limits import group_limits, partitions_for
from portal.core.cluster.gpu_offers import NO_GPUS, Gpus
from portal.core.cluster.gpu_usage import GpuCapacity, allocated_kind, gpu_capacities
from portal.core.cluster.inventory import Node, Partition
from portal.core.cluster.jobs import JobReport, JobState
from portal.core.cluster.limits import GroupLimit, Limits, Tres, user_limits
from portal.core.units import floor_size, format_cores, format_fgpu

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Allocation:
    """What all jobs of one user, account, QOS and partition hold; memory in MiB."""

    user: str
    account: str
    qos: str
    partition: str
    cpus: int
    memory_mb: int
    shards: int = 0
    gpus: int = 0
    fgpu: float = 0.0
    """Shards and whole GPUs together, converted by their kinds of GPU."""


@dataclass(frozen=True)
class Capacity:
    """Total and unallocated resources of a partition's usable nodes."""

    partition: str
    cpus: int
    memory_mb: int
    free_cpus: int
    free_memory_mb: int
    gpus: tuple[GpuCapacity, ...] = ()


@dataclass(frozen=True)
class ClusterUsage:
    """The cluster's use at one poll."""

    holdings: tuple[Allocation, ...] = ()
    rooms: tuple[Capacity, ...] = ()


@dataclass(frozen=True)
class Meter(Generic[Number]):
    """One resource of one user in one group: cores, MiB of memory, or fGPU."""

    mine: Number
    allowed: Number | None
    """The most that this user may hold in this group; None while unknown."""
    available: Number | None
    """How much more this user could get right now."""

    @property
    def upper(self) -> float | None:
        """The user's share of what they may hold in this group, in percent."""
        return _percent(self.mine, self.allowed)

    @property
    def lower(self) -> float | None:
        """The user's share of what they hold and could still get in this group, in percent."""
        return _percent(self.mine, None if self.available is None else self.mine + self.available)


def _percent(part: float, whole: float | None) -> float | None:
    if whole is None:
        return None
    return min(100.0 * part / whole, 100.0) if whole else 0.0


@dataclass
class _Taken:
    """What jobs hold, by node name; GPUs by node name and kind."""

    cpus: Counter[str] = field(default_factory=Counter)
    memory: Counter[str] = field(default_factory=Counter)
    fgpu: defaultdict[tuple[str, str], Fraction] = field(
        default_factory=lambda: defaultdict(Fraction)
    )


def measure_usage(
    jobs: Iterable[JobReport], nodes: Sequence[Node], gpus: Gpus = NO_GPUS
) -> ClusterUsage:
    """Sum up what all jobs hold."""
    held: dict[tuple[str, str, str, str], Counter[str]] = {}
    fgpu: defaultdict[tuple[str, str, str, str], Fraction] = defaultdict(Fraction)
    taken = _Taken()
    gpus_of = {node.name: node.gpus for node in nodes}
    for job in jobs:
        if job.state.over or job.state is JobState.PENDING:
            continue
        key = (job.user, job.account, job.qos, job.partition)
        mine = held.setdefault(key, Counter())
        mine.update(cpus=job.cpus, memory_mb=job.memory_mb, shards=job.shards, gpus=job.gpus)
        for node in job.nodes:  # squeue reports totals: equal shares are assumed
            taken.cpus[node] += -(-job.cpus // len(job.nodes))
            taken.memory[node] += -(-job.memory_mb // len(job.nodes))
            if kind := allocated_kind(job, gpus_of.get(node, ()), gpus):
                part = kind.fgpu(job.shards, job.gpus) / len(job.nodes)
                taken.fgpu[node, kind.name] += part
                fgpu[key] += part
    holdings = tuple(
        Allocation(*key, h["cpus"], h["memory_mb"], h["shards"], h["gpus"], float(fgpu[key]))
        for key, h in sorted(held.items())
    )
    return ClusterUsage(holdings, tuple(_rooms(nodes, taken, gpus)))


def _rooms(nodes: Sequence[Node], taken: _Taken, gpus: Gpus) -> Iterable[Capacity]:
    for name in dict.fromkeys(node.partition for node in nodes):
        all_nodes = [node for node in nodes if node.partition == name]
        usable = [node for node in all_nodes if node.usable]
        yield Capacity(
            name,
            sum(node.cpus for node in usable),
            sum(node.memory_mb for node in usable),
            sum(max(node.cpus - taken.cpus[node.name], 0) for node in usable),
            sum(max(node.memory_mb - taken.memory[node.name], 0) for node in usable),
            tuple(gpu_capacities(all_nodes, taken.fgpu, gpus)),
        )


def usage_meters(
    user: str, partition: str, limits: Limits | None, use: ClusterUsage
) -> tuple[Meter[int], Meter[int], Meter[float] | None]:
    """One user's cores, memory and fGPU in one partition; the last None if it has no GPUs."""
    own = user_limits(user, partition, limits) if limits else None
    found = [(total.amount, _held(use, total)) for total in (group_limits(own) if own else ())]
    room = next((room for room in use.rooms if room.partition == partition), None)
    here = GroupLimit(Tres(), "", user, partitions=frozenset({partition}))
    mine = _held(use, here)
    fgpu = sum(holding.fgpu for holding in _counted(use, here))
    return (
        _meter(
            mine.cpus or 0,
            (room.cpus, room.free_cpus) if room else None,
            [(most.cpus, held.cpus or 0) for most, held in found],
        ),
        _meter(
            mine.memory_mb or 0,
            (room.memory_mb, room.free_memory_mb) if room else None,
            [(most.memory_mb, held.memory_mb or 0) for most, held in found],
        ),
        _fgpu_meter(fgpu, room.gpus, found) if room and room.gpus else None,
    )


def _meter(
    mine: int, room: tuple[int, int] | None, limits: Iterable[tuple[int | None, int]]
) -> Meter[int]:
    known = [(most, held) for most, held in limits if most is not None]
    allowed = [most for most, _held in known]
    available = [most - held for most, held in known]
    if room is not None:
        allowed.append(room[0])
        available.append(room[1])
    return Meter(
        mine,
        min(allowed, default=None),
        None if not available else max(min(available), 0),
    )


def _fgpu_meter(
    mine: float, rooms: Sequence[GpuCapacity], limits: Sequence[tuple[Tres, Tres]]
) -> Meter[float]:
    """Slurm limits shards and whole GPUs separately; a user may hold both.

    If the shards of several kinds differ in size, the largest size counts: it gives the most that
    can be held within the limit.
    """
    allowed, available = sum(room.fgpu for room in rooms), sum(room.free for room in rooms)
    shard = max(room.shard for room in rooms)
    gpu = max((room.gpu for room in rooms if not room.shard or room.most > 1), default=0.0)
    units: list[tuple[float, Callable[[Tres], int | None]]] = [
        (shard, lambda amount: amount.shards),
        (gpu, lambda amount: amount.gpus),
    ]
    most, left = 0.0, 0.0
    for size_of_one, pick in units:
        bound = _meter(0, None, [(pick(amount), pick(held) or 0) for amount, held in limits])
        if size_of_one:  # one of the two without a limit means no limit
            most += math.inf if bound.allowed is None else size_of_one * bound.allowed
            left += math.inf if bound.available is None else size_of_one * bound.available
    allowed, available = min(allowed, most), min(available, left)
    return Meter(round(mine, 3), round(allowed, 3), round(available, 3))


def capacity_of(rooms: Sequence[Capacity], partition: str, kind: str) -> GpuCapacity | None:
    """The GPUs of one kind in a partition."""
    found = (gpus for room in rooms if room.partition == partition for gpus in room.gpus)
    return next((gpus for gpus in found if gpus.kind == kind), None)


def limit_reached(
    user: str,
    partition: str,
    wanted: Tres,
    limits: Limits | None,
    use: ClusterUsage,
    gpu_kind: str = "",
) -> str:
    """The group limit that currently prevents this user from getting more; "" if none does.

    Slurm's own estimate considers free nodes only, and may promise a start that limits prevent.
    """
    own = user_limits(user, partition, limits) if limits else None
    room = capacity_of(use.rooms, partition, gpu_kind)
    shard, gpu = (room.shard, room.gpu) if room else (0, 0)
    for total in group_limits(own) if own else ():
        most, held = total.amount, _held(use, total)
        for bound, holds, more, written in (
            (most.cpus, held.cpus, wanted.cpus, format_cores),
            (most.memory_mb, held.memory_mb, wanted.memory_mb, floor_size),
            (most.shards, held.shards, wanted.shards, lambda number: format_fgpu(number * shard)),
            (most.gpus, held.gpus, wanted.gpus, lambda number: format_fgpu(number * gpu)),
        ):
            if bound is not None and more and (holds or 0) + more > bound:
                return total.who.format(amount=written(bound))
    return ""


def _counted(use: ClusterUsage, total: GroupLimit) -> list[Allocation]:
    return [
        holding
        for holding in use.holdings
        if total.user in (None, holding.user)
        and (total.accounts is None or holding.account in total.accounts)
        and total.qos in (None, holding.qos)
        and (total.partitions is None or holding.partition in total.partitions)
    ]


def _held(use: ClusterUsage, total: GroupLimit) -> Tres:
    counted = _counted(use, total)
    return Tres(
        sum(h.cpus for h in counted),
        sum(h.memory_mb for h in counted),
        sum(h.shards for h in counted),
        sum(h.gpus for h in counted),
    )


@dataclass(frozen=True)
class PartitionUsage:
    """The usage bars of one user in one group, with the names of all groups they may use."""

    group: str
    groups: tuple[str, ...]
    cpus: Meter[int]
    memory: Meter[int]
    fgpu: Meter[float] | None
    """None if the group has no GPUs."""


def partition_usage(
    user: str,
    wanted: str | None,
    partitions: Sequence[Partition],
    limits: Limits | None,
    use: ClusterUsage,
) -> PartitionUsage | None:
    """The bars of the wanted group, else of the default; None if the user may not use it."""
    groups = partitions_for(user, partitions, limits)
    if wanted is None:
        group = next((g for g in groups if g.default), groups[0] if groups else None)
    else:
        group = next((g for g in groups if g.name == wanted), None)
    if group is None:
        return None
    return PartitionUsage(
        group.name, tuple(g.name for g in groups), *usage_meters(user, group.name, limits, use)
    )


@dataclass(frozen=True)
class SlurmStatus:
    """When Slurm last answered the worker, and since when it has failed to."""

    answered: datetime | None
    failing_since: datetime | None
    message: str = ""
    rooms: tuple[Capacity, ...] = ()
    """Unallocated resources of each partition at the last poll."""

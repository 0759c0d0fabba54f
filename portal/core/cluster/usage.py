"""Current use of the cluster: allocated and free resources, and the limits that are reached.

All values come from one poll of Slurm's queue and nodes; there are no running counters that could
drift. A job holds its allocation from its start until its last node has completed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property

from portal.core.cluster.effective_limits import group_limits
from portal.core.cluster.gpu_offers import NO_GPUS, Gpus
from portal.core.cluster.gpu_usage import GpuCapacity, allocated_kind, gpu_capacities
from portal.core.cluster.inventory import Node
from portal.core.cluster.job_reports import JobReport
from portal.core.cluster.limits import GroupLimit, Limits, Tres, user_limits
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions
from portal.core.units import floor_size, format_cores, format_fgpu

WORKER_SILENT_AFTER = timedelta(seconds=12)
"""Maximum age of the worker's heartbeat, which it sends every three seconds. Less than the maximum
age of Slurm's last answer (core/session/status.py), so that Slurm is never blamed for it."""


@dataclass(frozen=True)
class Allocation:
    """The resources of all jobs of one user, account, QOS and partition; memory in MiB."""

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
class Overlap:
    """Resources on a partition's nodes that a user's jobs of other partitions hold (MiB)."""

    user: str
    partition: str
    cpus: int
    memory_mb: int
    fgpu: float = 0.0


@dataclass(frozen=True)
class ClusterUsage:
    """The cluster's use at one poll."""

    holdings: tuple[Allocation, ...] = ()
    rooms: tuple[Capacity, ...] = ()
    overlaps: tuple[Overlap, ...] = ()

    def held_by(self, user: str) -> Sequence[Allocation]:
        """The allocations of one user."""
        return self._by_user.get(user, ())

    def overlap_of(self, user: str, partition: str) -> Overlap:
        """What a user's jobs of other partitions hold on a partition's nodes."""
        return self._overlaps.get((user, partition)) or Overlap(user, partition, 0, 0)

    @cached_property
    def _by_user(self) -> Mapping[str, Sequence[Allocation]]:
        by_user: defaultdict[str, list[Allocation]] = defaultdict(list)
        for allocation in self.holdings:
            by_user[allocation.user].append(allocation)
        return dict(by_user)

    @cached_property
    def _overlaps(self) -> Mapping[tuple[str, str], Overlap]:
        return {(overlap.user, overlap.partition): overlap for overlap in self.overlaps}

    @cached_property
    def sums(self) -> dict[GroupLimit, Tres]:
        """The sums under limits of several users, which are the same for all pages."""
        return {}


@dataclass
class _Allocated:
    """Allocated resources by node name; GPUs by node name and kind."""

    cpus: Counter[str] = field(default_factory=Counter)
    memory: Counter[str] = field(default_factory=Counter)
    fgpu: defaultdict[tuple[str, str], Fraction] = field(
        default_factory=lambda: defaultdict(Fraction)
    )


def measure_usage(
    jobs: Iterable[JobReport], nodes: Sequence[Node], gpus: Gpus = NO_GPUS
) -> ClusterUsage:
    """Sum up the resources that all jobs hold."""
    sums: defaultdict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0] * 4)
    fgpu: defaultdict[tuple[str, str, str, str], Fraction] = defaultdict(Fraction)
    allocated = _Allocated()
    gpus_of = {node.name: node.gpus for node in nodes}
    overlaps = _OverlapSums(nodes)
    for job in jobs:
        if not job.state.holds:
            continue
        key = (job.user, job.account, job.qos, job.partition)
        held = sums[key]  # a Counter takes ten times longer
        held[0] += job.cpus
        held[1] += job.memory_mb
        held[2] += job.shards
        held[3] += job.gpus
        cpus, memory_mb = job.on_each_node  # squeue reports totals: equal shares are assumed
        for node in job.nodes:
            allocated.cpus[node] += cpus
            allocated.memory[node] += memory_mb
            part = Fraction(0)
            if kind := allocated_kind(job, gpus_of.get(node, ()), gpus):
                part = kind.fgpu(job.shards, job.gpus) / len(job.nodes)
                allocated.fgpu[node, kind.name] += part
                fgpu[key] += part
            overlaps.add(job, node, part)
    allocations = tuple(
        Allocation(*key, cpus, memory_mb, shards, whole, float(fgpu[key]))
        for key, (cpus, memory_mb, shards, whole) in sorted(sums.items())
    )
    return ClusterUsage(
        allocations, tuple(_capacities(nodes, allocated, gpus)), overlaps.overlaps()
    )


class _OverlapSums:
    """Sums up the resources of jobs on nodes that also belong to other partitions."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._partitions: defaultdict[str, list[str]] = defaultdict(list)
        for node in nodes:
            self._partitions[node.name].append(node.partition)
        self._sums: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._fgpu: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)

    def add(self, job: JobReport, node: str, fgpu: Fraction) -> None:
        """Add the resources of a job on one of its nodes."""
        cpus, memory_mb = job.on_each_node
        for partition in self._partitions.get(node, ()):
            if partition != job.partition:
                self._sums[job.user, partition].update(cpus=cpus, memory_mb=memory_mb)
                self._fgpu[job.user, partition] += fgpu

    def overlaps(self) -> tuple[Overlap, ...]:
        """The sums, by user and partition."""
        return tuple(
            Overlap(*key, sums["cpus"], sums["memory_mb"], float(self._fgpu[key]))
            for key, sums in sorted(self._sums.items())
        )


def _capacities(nodes: Sequence[Node], allocated: _Allocated, gpus: Gpus) -> Iterable[Capacity]:
    for name in dict.fromkeys(node.partition for node in nodes):
        all_nodes = [node for node in nodes if node.partition == name]
        usable = [node for node in all_nodes if node.usable]
        yield Capacity(
            name,
            sum(node.cpus for node in usable),
            sum(node.memory_mb for node in usable),
            sum(max(node.cpus - allocated.cpus[node.name], 0) for node in usable),
            sum(max(node.memory_mb - allocated.memory[node.name], 0) for node in usable),
            tuple(gpu_capacities(all_nodes, allocated.fgpu, gpus)),
        )


def capacity_of(capacities: Sequence[Capacity], partition: str, kind: str) -> GpuCapacity | None:
    """The GPUs of one kind in a partition."""
    gpus_there = (
        gpus for capacity in capacities if capacity.partition == partition for gpus in capacity.gpus
    )
    return next((gpus for gpus in gpus_there if gpus.kind == kind), None)


@dataclass(frozen=True)
class BlockingLimit:
    """A group limit that currently prevents a user from getting more of one resource."""

    group_limit: GroupLimit
    resource: str
    """"cpus", "memory_mb" or "fgpu"."""
    bound: float
    """In cores, MiB or fGPU, as are the next two."""
    used: float
    requested: float

    @property
    def text(self) -> str:
        """The limit in words."""
        written: dict[str, Callable[[float], str]] = {
            "cpus": lambda number: format_cores(int(number)),
            "memory_mb": lambda mb: floor_size(int(mb)),
            "fgpu": format_fgpu,
        }
        return self.group_limit.text.format(amount=written[self.resource](self.bound))


def blocking_limits(
    user: str,
    partition: str,
    requested: Tres,
    limits: Limits | None,
    use: ClusterUsage,
    gpu_kind: str = "",
    options: SlurmOptions = NO_OPTIONS,
) -> Iterator[BlockingLimit]:
    """The group limits that currently prevent this user from getting more.

    Slurm's own estimate considers free nodes only, and may promise a start that limits prevent.
    """
    effective = user_limits(user, partition, limits, options) if limits else None
    gpus = capacity_of(use.rooms, partition, gpu_kind)
    shard, gpu = (gpus.shard, gpus.gpu) if gpus else (0.0, 0.0)
    for limit in group_limits(effective) if effective else ():
        most, allocated = limit.amount, allocated_under(use, limit)
        for resource, bound, used, extra, size in (
            ("cpus", most.cpus, allocated.cpus, requested.cpus, 1.0),
            ("memory_mb", most.memory_mb, allocated.memory_mb, requested.memory_mb, 1.0),
            ("fgpu", most.shards, allocated.shards, requested.shards, shard),
            ("fgpu", most.gpus, allocated.gpus, requested.gpus, gpu),
        ):
            if bound is not None and extra and (used or 0) + extra > bound:
                yield BlockingLimit(limit, resource, bound * size, (used or 0) * size, extra * size)


def limit_reached(
    user: str,
    partition: str,
    requested: Tres,
    limits: Limits | None,
    use: ClusterUsage,
    gpu_kind: str = "",
    options: SlurmOptions = NO_OPTIONS,
) -> str:
    """The first blocking limit in words; "" if there is none."""
    blocking = blocking_limits(user, partition, requested, limits, use, gpu_kind, options)
    return next((limit.text for limit in blocking), "")


def allocations_under(use: ClusterUsage, limit: GroupLimit) -> list[Allocation]:
    """The allocations that a group limit counts."""
    return [
        allocation
        for allocation in (use.holdings if limit.user is None else use.held_by(limit.user))
        if (limit.accounts is None or allocation.account in limit.accounts)
        and limit.qos in (None, allocation.qos)
        and (limit.partitions is None or allocation.partition in limit.partitions)
    ]


def allocated_under(use: ClusterUsage, limit: GroupLimit) -> Tres:
    """The sum of the allocations that a group limit counts."""
    if limit.user is not None:
        return _total(allocations_under(use, limit))
    if limit not in use.sums:
        use.sums[limit] = _total(allocations_under(use, limit))
    return use.sums[limit]


def _total(allocations: Sequence[Allocation]) -> Tres:
    return Tres(
        sum(h.cpus for h in allocations),
        sum(h.memory_mb for h in allocations),
        sum(h.shards for h in allocations),
        sum(h.gpus for h in allocations),
    )


@dataclass(frozen=True)
class SlurmStatus:
    """The time of Slurm's last answer to the worker, and of its first failure since."""

    answered: datetime | None
    failing_since: datetime | None
    message: str = ""
    rooms: tuple[Capacity, ...] = ()
    """Unallocated resources of each partition at the last poll."""
    worker_seen: datetime | None = None
    """The worker's last heartbeat; None if it never ran."""

    def worker_down(self, now: datetime) -> bool:
        """Whether the worker is not running, so that it is unknown whether Slurm answers."""
        return self.worker_seen is not None and now - self.worker_seen > WORKER_SILENT_AFTER

"""Current use of the cluster: what jobs hold, what is free, which limits are reached.

All values come from one poll of Slurm's queue and nodes; there are no running counters that could
drift. A job holds its allocation from its start until its last node has completed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction

from portal.core.cluster.effective_limits import group_limits
from portal.core.cluster.gpu_offers import NO_GPUS, Gpus
from portal.core.cluster.gpu_usage import GpuCapacity, allocated_kind, gpu_capacities
from portal.core.cluster.inventory import Node
from portal.core.cluster.jobs import JobReport
from portal.core.cluster.limits import GroupLimit, Limits, Tres, user_limits
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions
from portal.core.units import floor_size, format_cores, format_fgpu

WORKER_SILENT_AFTER = timedelta(seconds=12)
"""Maximum age of the worker's last sign of life, which it gives every three seconds; less than that
of Slurm's last answer (core/session/status.py), so that Slurm is never blamed for it."""


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
class Overlap:
    """What a user's jobs of other partitions hold on the nodes of this one; memory in MiB."""

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
    beside = _Beside(nodes)
    for job in jobs:
        if not job.state.holds:
            continue
        key = (job.user, job.account, job.qos, job.partition)
        mine = held.setdefault(key, Counter())
        mine.update(cpus=job.cpus, memory_mb=job.memory_mb, shards=job.shards, gpus=job.gpus)
        for node in job.nodes:  # squeue reports totals: equal shares are assumed
            cpus, memory_mb = job.on_each_node
            taken.cpus[node] += cpus
            taken.memory[node] += memory_mb
            part = Fraction(0)
            if kind := allocated_kind(job, gpus_of.get(node, ()), gpus):
                part = kind.fgpu(job.shards, job.gpus) / len(job.nodes)
                taken.fgpu[node, kind.name] += part
                fgpu[key] += part
            beside.add(job, node, part)
    holdings = tuple(
        Allocation(*key, h["cpus"], h["memory_mb"], h["shards"], h["gpus"], float(fgpu[key]))
        for key, h in sorted(held.items())
    )
    return ClusterUsage(holdings, tuple(_rooms(nodes, taken, gpus)), beside.overlaps())


class _Beside:
    """Sums up what jobs hold on nodes that also belong to other partitions than theirs."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._partitions: defaultdict[str, list[str]] = defaultdict(list)
        for node in nodes:
            self._partitions[node.name].append(node.partition)
        self._held: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._fgpu: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)

    def add(self, job: JobReport, node: str, fgpu: Fraction) -> None:
        """Count what a job holds on one of its nodes."""
        cpus, memory_mb = job.on_each_node
        for partition in self._partitions.get(node, ()):
            if partition != job.partition:
                self._held[job.user, partition].update(cpus=cpus, memory_mb=memory_mb)
                self._fgpu[job.user, partition] += fgpu

    def overlaps(self) -> tuple[Overlap, ...]:
        """The sums, by user and partition."""
        return tuple(
            Overlap(*key, held["cpus"], held["memory_mb"], float(self._fgpu[key]))
            for key, held in sorted(self._held.items())
        )


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


def capacity_of(rooms: Sequence[Capacity], partition: str, kind: str) -> GpuCapacity | None:
    """The GPUs of one kind in a partition."""
    found = (gpus for room in rooms if room.partition == partition for gpus in room.gpus)
    return next((gpus for gpus in found if gpus.kind == kind), None)


@dataclass(frozen=True)
class LimitInTheWay:
    """A group limit that currently prevents a user from getting more of one resource."""

    total: GroupLimit
    resource: str
    """"cpus", "memory_mb" or "fgpu"."""
    bound: float
    """Cores, MiB or fGPU; so are the next two."""
    held: float
    wanted: float

    @property
    def text(self) -> str:
        """The limit in words."""
        written: dict[str, Callable[[float], str]] = {
            "cpus": lambda number: format_cores(int(number)),
            "memory_mb": lambda mb: floor_size(int(mb)),
            "fgpu": format_fgpu,
        }
        return self.total.who.format(amount=written[self.resource](self.bound))


def limits_in_the_way(
    user: str,
    partition: str,
    wanted: Tres,
    limits: Limits | None,
    use: ClusterUsage,
    gpu_kind: str = "",
    options: SlurmOptions = NO_OPTIONS,
) -> Iterator[LimitInTheWay]:
    """The group limits that currently prevent this user from getting more.

    Slurm's own estimate considers free nodes only, and may promise a start that limits prevent.
    """
    own = user_limits(user, partition, limits, options) if limits else None
    room = capacity_of(use.rooms, partition, gpu_kind)
    shard, gpu = (room.shard, room.gpu) if room else (0.0, 0.0)
    for total in group_limits(own) if own else ():
        most, held = total.amount, held_by(use, total)
        for resource, bound, holds, more, size in (
            ("cpus", most.cpus, held.cpus, wanted.cpus, 1.0),
            ("memory_mb", most.memory_mb, held.memory_mb, wanted.memory_mb, 1.0),
            ("fgpu", most.shards, held.shards, wanted.shards, shard),
            ("fgpu", most.gpus, held.gpus, wanted.gpus, gpu),
        ):
            if bound is not None and more and (holds or 0) + more > bound:
                yield LimitInTheWay(total, resource, bound * size, (holds or 0) * size, more * size)


def limit_reached(
    user: str,
    partition: str,
    wanted: Tres,
    limits: Limits | None,
    use: ClusterUsage,
    gpu_kind: str = "",
    options: SlurmOptions = NO_OPTIONS,
) -> str:
    """The first of these limits in words; "" if there is none."""
    found = limits_in_the_way(user, partition, wanted, limits, use, gpu_kind, options)
    return next((limit.text for limit in found), "")


def counted(use: ClusterUsage, total: GroupLimit) -> list[Allocation]:
    """The allocations that a limit counts."""
    return [
        holding
        for holding in use.holdings
        if total.user in (None, holding.user)
        and (total.accounts is None or holding.account in total.accounts)
        and total.qos in (None, holding.qos)
        and (total.partitions is None or holding.partition in total.partitions)
    ]


def held_by(use: ClusterUsage, total: GroupLimit) -> Tres:
    """What the allocations that a limit counts hold together."""
    found = counted(use, total)
    return Tres(
        sum(h.cpus for h in found),
        sum(h.memory_mb for h in found),
        sum(h.shards for h in found),
        sum(h.gpus for h in found),
    )


@dataclass(frozen=True)
class SlurmStatus:
    """When Slurm last answered the worker, and since when it has failed to."""

    answered: datetime | None
    failing_since: datetime | None
    message: str = ""
    rooms: tuple[Capacity, ...] = ()
    """Unallocated resources of each partition at the last poll."""
    worker_seen: datetime | None = None
    """The worker's last sign of life; None if it never ran."""

    def worker_down(self, now: datetime) -> bool:
        """Whether the worker is not running, so that nobody knows whether Slurm answers."""
        return self.worker_seen is not None and now - self.worker_seen > WORKER_SILENT_AFTER

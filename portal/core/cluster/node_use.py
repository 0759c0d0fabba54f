"""Who holds what on which node, for administrators."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from portal.core.cluster.gpu_offers import NO_GPUS, Gpus, is_of
from portal.core.cluster.gpu_usage import allocated_kind
from portal.core.cluster.inventory import Node
from portal.core.cluster.jobs import JobReport


@dataclass(frozen=True)
class Held:
    """What all jobs of one user hold, on a node or on the cluster; memory in MiB."""

    user: str
    cpus: int
    memory_mb: int
    fgpu: float = 0.0
    jobs: int = 0


@dataclass(frozen=True)
class NodeUse:
    """One node: what it has, and who holds how much of that."""

    name: str
    partitions: tuple[str, ...]
    usable: bool
    cpus: int
    memory_mb: int
    fgpu: float = 0.0
    held: tuple[Held, ...] = ()

    @property
    def taken(self) -> Held:
        """What all users hold together."""
        return _sum("", self.held)


@dataclass(frozen=True)
class Overview:
    """The whole cluster: what its usable nodes have, and who holds what, most cores first."""

    nodes: tuple[NodeUse, ...] = ()
    users: tuple[Held, ...] = field(default=())

    @property
    def usable(self) -> int:
        """Number of usable nodes."""
        return sum(node.usable for node in self.nodes)

    @property
    def whole(self) -> Held:
        """What the usable nodes have."""
        up = [node for node in self.nodes if node.usable]
        return Held(
            "",
            sum(node.cpus for node in up),
            sum(node.memory_mb for node in up),
            round(sum(node.fgpu for node in up), 3),
        )

    @property
    def taken(self) -> Held:
        """What all users hold together."""
        return _sum("", self.users)


def _sum(user: str, parts: Iterable[Held]) -> Held:
    known = list(parts)
    return Held(
        user,
        sum(part.cpus for part in known),
        sum(part.memory_mb for part in known),
        round(sum(part.fgpu for part in known), 3),
        sum(part.jobs for part in known),
    )


def overview(nodes: Sequence[NodeUse]) -> Overview:
    """The overview of these nodes; a job on several nodes counts on each."""
    by_user: defaultdict[str, list[Held]] = defaultdict(list)
    for node in nodes:
        for held in node.held:
            by_user[held.user].append(held)
    users = [_sum(user, parts) for user, parts in by_user.items()]
    return Overview(tuple(nodes), tuple(sorted(users, key=lambda one: (-one.cpus, one.user))))


def measure_nodes(
    jobs: Iterable[JobReport], nodes: Sequence[Node], gpus: Gpus = NO_GPUS
) -> tuple[NodeUse, ...]:
    """Who holds what on each node, by name."""
    first = {node.name: node for node in reversed(nodes)}
    partitions: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        partitions[node.name].append(node.partition)
    held: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    fgpu: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for job in jobs:
        cpus, memory_mb = job.on_each_node
        for name in job.nodes if job.state.holds else ():
            held[name, job.user].update(cpus=cpus, memory_mb=memory_mb, jobs=1)
            there = first[name].gpus if name in first else ()
            if kind := allocated_kind(job, there, gpus):
                fgpu[name, job.user] += kind.fgpu(job.shards, job.gpus) / len(job.nodes)
    on_node: defaultdict[str, list[Held]] = defaultdict(list)
    for (name, user), sums in sorted(held.items()):
        amount = float(fgpu[name, user])
        on_node[name].append(Held(user, sums["cpus"], sums["memory_mb"], amount, sums["jobs"]))
    return tuple(
        NodeUse(
            name,
            tuple(partitions[name]),
            node.usable,
            node.cpus,
            node.memory_mb,
            _fgpu(node, gpus),
            tuple(on_node[name]),
        )
        for name, node in sorted(first.items())
    )


def _fgpu(node: Node, gpus: Gpus) -> float:
    return float(
        sum(
            (
                found.gpus * kind.whole
                for found in node.gpus
                for kind in gpus.kinds
                if is_of(found, kind)
            ),
            Fraction(0),
        )
    )

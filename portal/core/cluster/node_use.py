"""Allocations by node and user, for administrators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from portal.core.cluster.gpu_offers import NO_GPUS, Gpus, is_of_kind
from portal.core.cluster.gpu_usage import allocated_kind
from portal.core.cluster.inventory import Node
from portal.core.cluster.job_reports import JobReport


@dataclass(frozen=True)
class UserAllocation:
    """The allocations of all jobs of one user, on a node or on the cluster; memory in MiB."""

    user: str
    cpus: int
    memory_mb: int
    fgpu: float = 0.0
    jobs: int = 0


@dataclass(frozen=True)
class NodeUse:
    """One node: its resources, and the allocation of each user."""

    name: str
    partitions: tuple[str, ...]
    usable: bool
    cpus: int
    memory_mb: int
    fgpu: float = 0.0
    held: tuple[UserAllocation, ...] = ()
    state: str = ""
    features: tuple[str, ...] = ()
    reason: str = ""

    @cached_property
    def taken(self) -> UserAllocation:
        """The allocations of all users together."""
        return add_up("", self.held)


def add_up(user: str, parts: Iterable[UserAllocation]) -> UserAllocation:
    """The sum of allocations."""
    allocations = list(parts)
    return UserAllocation(
        user,
        sum(part.cpus for part in allocations),
        sum(part.memory_mb for part in allocations),
        round(sum(part.fgpu for part in allocations), 3),
        sum(part.jobs for part in allocations),
    )


def users_of(nodes: Iterable[NodeUse]) -> list[UserAllocation]:
    """The allocation of each user, most cores first; a job on several nodes counts on each."""
    by_user: defaultdict[str, list[UserAllocation]] = defaultdict(list)
    for node in nodes:
        for allocation in node.held:
            by_user[allocation.user].append(allocation)
    users = [add_up(user, parts) for user, parts in by_user.items()]
    return sorted(users, key=lambda user: (-user.cpus, user.user))


def measure_nodes(
    jobs: Iterable[JobReport], nodes: Sequence[Node], gpus: Gpus = NO_GPUS
) -> tuple[NodeUse, ...]:
    """The use of each node, sorted by name."""
    first = {node.name: node for node in reversed(nodes)}
    partitions: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        partitions[node.name].append(node.partition)
    sums_of: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * 3)
    fgpu: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for job in jobs:
        cpus, memory_mb = job.on_each_node
        for name in job.nodes if job.state.holds else ():
            sums = sums_of[name, job.user]  # a Counter takes ten times longer
            sums[0] += cpus
            sums[1] += memory_mb
            sums[2] += 1
            node_gpus = first[name].gpus if name in first else ()
            if kind := allocated_kind(job, node_gpus, gpus):
                fgpu[name, job.user] += kind.fgpu(job.shards, job.gpus) / len(job.nodes)
    on_node: defaultdict[str, list[UserAllocation]] = defaultdict(list)
    for (name, user), (cpus, memory_mb, number) in sorted(sums_of.items()):
        amount = float(fgpu[name, user])
        on_node[name].append(UserAllocation(user, cpus, memory_mb, amount, number))
    return tuple(
        NodeUse(
            name,
            tuple(partitions[name]),
            node.usable,
            node.cpus,
            node.memory_mb,
            _fgpu(node, gpus),
            tuple(on_node[name]),
            node.state,
            node.features,
            node.reason,
        )
        for name, node in sorted(first.items())
    )


def _fgpu(node: Node, gpus: Gpus) -> float:
    return float(
        sum(
            (
                node_gpus.gpus * kind.whole_gpu
                for node_gpus in node.gpus
                for kind in gpus.kinds
                if is_of_kind(node_gpus, kind)
            ),
            Fraction(0),
        )
    )

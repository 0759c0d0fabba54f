"""The cluster's partitions, nodes and GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from portal.core.units import format_size, short_minutes


@dataclass(frozen=True)
class NodeGpus:
    """The GPUs of one kind in one node: their number, and that of their shards."""

    kind: str
    """Type in gres.conf; "" if they have none."""
    gpus: int
    shards: int = 0


@dataclass(frozen=True)
class Partition:
    """One Slurm partition (to users: a resource group) and its largest node."""

    name: str
    default: bool
    up: bool
    max_cpus: int
    max_memory_mb: int
    max_minutes: int | None
    default_minutes: int | None = None
    """Time limit of a session that requests none; None if unlimited, or not known yet."""
    gpus: tuple[NodeGpus, ...] = ()
    """For each kind of GPU, the largest numbers in one node."""
    max_shards: int | None = None
    max_gpus: int | None = None
    """The most that Slurm's limits allow one session; None without a limit."""

    def too_much(self, resource: str) -> str:
        """The limit on "cpus", "memory" or "time", in words.

        Limits on "shards" and "gpus" are in core/cluster/effective_limits.py; the GPUs of the nodes
        depend on the kind (core/cluster/gpu_offers.py).
        """
        match resource:
            case "cpus":
                return f"the largest node here has {self.max_cpus} cores"
            case "memory":
                return f"the largest node here has {format_size(self.max_memory_mb)}"
            case _:
                return f"sessions here may run {short_minutes(self.max_minutes or 0)} at most"


@dataclass(frozen=True)
class Node:
    """One node of one partition; a node in several partitions is listed once for each."""

    name: str
    partition: str
    cpus: int
    memory_mb: int
    usable: bool
    gpus: tuple[NodeGpus, ...] = ()
    state: str = ""
    """Slurm's state with all its flags, such as "mixed+drain"."""
    features: tuple[str, ...] = ()
    reason: str = ""
    """Why an administrator, Slurm or a health check took it out of service; "" without a reason."""

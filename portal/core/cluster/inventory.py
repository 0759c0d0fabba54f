"""What the cluster has: partitions, nodes and their GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from portal.core.units import format_size


@dataclass(frozen=True)
class NodeGpus:
    """The GPUs of one kind in one node: how many, and their shards."""

    kind: str
    """Their Type in gres.conf; "" where they have none."""
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
    gpus: tuple[NodeGpus, ...] = ()
    """For each kind of GPU the most that one node has."""
    max_shards: int | None = None
    max_gpus: int | None = None
    """The most that a session may have of them by somebody's limit; None where none is set."""

    def too_much(self, what: str) -> str:
        """Say why no request may ask for more "cpus", "memory" or "time".

        "shards" and "gpus" are bounded by limits (core/cluster/effective_limits.py); what the nodes
        themselves allow depends on the kind of GPU (core/cluster/gpu_offers.py).
        """
        match what:
            case "cpus":
                return f"the largest node here has {self.max_cpus} cores"
            case "memory":
                return f"the largest node here has {format_size(self.max_memory_mb)}"
            case _:
                return f"sessions here may run {self.max_minutes} minutes at most"


@dataclass(frozen=True)
class Node:
    """One node of one partition; a node of several is listed for each."""

    name: str
    partition: str
    cpus: int
    memory_mb: int
    usable: bool
    gpus: tuple[NodeGpus, ...] = ()

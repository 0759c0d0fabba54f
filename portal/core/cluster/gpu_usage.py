"""Allocated and free GPUs, in fGPU, computed from the nodes' GPUs and Slurm's jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from portal.core.cluster.gpu_offers import Gpus, is_of_kind
from portal.core.cluster.inventory import Node, NodeGpus
from portal.core.cluster.job_reports import JobReport
from portal.node.common.fgpu import GpuKind


@dataclass(frozen=True)
class GpuCapacity:
    """The GPUs of one kind in a partition's usable nodes, in fGPU."""

    kind: str
    title: str
    fgpu: float
    free: float
    """Unallocated share, in fGPU."""
    shard: float
    """One shard, in fGPU; 0 if these GPUs are not shared."""
    gpu: float
    """One whole GPU, in fGPU."""
    most: int
    """Number of GPUs in the node with most of them."""


def allocated_kind(job: JobReport, node_gpus: Sequence[NodeGpus], gpus: Gpus) -> GpuKind | None:
    """The kind of GPU that a job holds on a node; None if it holds none.

    squeue does not report the kind: on a node with several kinds, the first possible one in the
    settings is assumed.
    """
    if not job.shards and not job.gpus:
        return None
    fitting = [g for g in node_gpus if g.shards or not job.shards]
    return next((kind for kind in gpus.kinds if any(is_of_kind(g, kind) for g in fitting)), None)


def gpu_capacities(
    nodes: Sequence[Node], taken: Mapping[tuple[str, str], Fraction], gpus: Gpus
) -> Iterator[GpuCapacity]:
    """A partition's GPUs by kind; `taken` is the allocated fGPU by node name and kind.

    A job that holds whole GPUs takes all of their shards.
    """
    for kind in gpus.kinds:
        equipped = [(node, number) for node in nodes if (number := _count(node, kind))]
        usable = [(node, number * kind.whole_gpu) for node, number in equipped if node.usable]
        allocated = (taken.get((node.name, kind.name), Fraction(0)) for node, _total in usable)
        free = (
            max(total - part, Fraction(0))
            for (_node, total), part in zip(usable, allocated, strict=True)
        )
        if equipped:
            yield GpuCapacity(
                kind=kind.name,
                title=kind.title,
                fgpu=float(sum(total for _node, total in usable)),
                free=float(sum(free)),
                shard=float(kind.fgpu(1)) if kind.sharing == "shared" else 0.0,
                gpu=float(kind.whole_gpu),
                most=max(number for _node, number in equipped),
            )


def _count(node: Node, kind: GpuKind) -> int:
    return sum(g.gpus for g in node.gpus if is_of_kind(g, kind))

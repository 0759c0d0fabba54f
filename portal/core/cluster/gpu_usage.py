"""Allocated and free GPUs, in fGPU: computed from the nodes' GPUs and Slurm's jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from portal.core.cluster.gpu_offers import Gpus, is_of
from portal.core.cluster.inventory import Node, NodeGpus
from portal.core.cluster.jobs import JobReport
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
    """Number in the largest node."""


def allocated_kind(job: JobReport, there: Sequence[NodeGpus], gpus: Gpus) -> GpuKind | None:
    """The kind of GPU that a job holds on a node; None if it holds none.

    squeue does not report the kind: on a node with several kinds, the first possible one in the
    settings is assumed.
    """
    if not job.shards and not job.gpus:
        return None
    fitting = [found for found in there if found.shards or not job.shards]
    return next((kind for kind in gpus.kinds if any(is_of(f, kind) for f in fitting)), None)


def gpu_capacities(
    nodes: Sequence[Node], taken: Mapping[tuple[str, str], Fraction], gpus: Gpus
) -> Iterator[GpuCapacity]:
    """A partition's GPUs by kind; `taken` is the allocated fGPU by node name and kind.

    A job that holds whole GPUs takes all of their shards.
    """
    for kind in gpus.kinds:
        having = [(node, number) for node in nodes if (number := _count(node, kind))]
        usable = [(node, number * kind.whole) for node, number in having if node.usable]
        held = (taken.get((node.name, kind.name), Fraction(0)) for node, _whole in usable)
        free = (
            max(whole - part, Fraction(0))
            for (_node, whole), part in zip(usable, held, strict=True)
        )
        if having:
            yield GpuCapacity(
                kind=kind.name,
                title=kind.title,
                fgpu=float(sum(whole for _node, whole in usable)),
                free=float(sum(free)),
                shard=float(kind.fgpu(1)) if kind.sharing == "shared" else 0.0,
                gpu=float(kind.whole),
                most=max(number for _node, number in having),
            )


def _count(node: Node, kind: GpuKind) -> int:
    return sum(found.gpus for found in node.gpus if is_of(found, kind))

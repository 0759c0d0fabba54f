"""Slurm's configuration for this node's GPUs: gres.conf, slurm.conf."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from portal.node.common.fgpu import GpuKind
from portal.node.gpu.nvml import Device
from portal.node.gpu.slices import is_like


def find_kind(device: Device, kinds: Sequence[GpuKind], context: int) -> GpuKind | None:
    """Return the most likely kind of a GPU, by its memory and then its name; None if ambiguous."""
    sharing = [kind for kind in kinds if (kind.sharing == "mig") == device.mig]
    matches = [kind for kind in sharing if is_like(device, kind, context)]
    same_name = [kind for kind in matches if kind.name.lower() in device.name.lower()]
    if len(matches) > 1 and same_name:
        matches = sorted(same_name, key=lambda kind: -len(kind.name))[:1]
    return matches[0] if len(matches) == 1 else None


def gres_conf(
    node: str, devices: Sequence[Device], kinds: Sequence[GpuKind], context: int
) -> Iterator[str]:
    """The node's lines for gres.conf and slurm.conf.

    One line for each device, in the order in which `Nvml.devices` lists them: Slurm numbers GPUs
    by these lines, and Prolog finds them by that number.
    """
    counts: Counter[str] = Counter()
    shards: list[str] = []
    yield f"# gres.conf, made by slipway-gpu gres on {node}; without AutoDetect, in this order"
    for device in devices:
        kind = find_kind(device, kinds, context)
        name = kind.name if kind else ""
        if kind is None:
            yield f"# {device.name}, {device.memory >> 20} MiB: no kind in the settings; whole only"
        yield _line(node, "gpu", device, name)
        counts[":".join(filter(None, ("gpu", name)))] += 1
        if kind and kind.sharing == "shared":
            shards.append(f"NodeName={node} Name=shard Count={kind.shards} File={device.files[0]}")
            counts["shard"] += kind.shards
    yield from shards
    total = ",".join(f"{name}:{count}" for name, count in counts.items())
    yield "# slurm.conf: GresTypes=gpu,shard AccountingStorageTRES=gres/gpu,gres/shard"
    yield f"# slurm.conf: NodeName={node} ... Gres={total}"


def _line(node: str, name: str, device: Device, type_: str) -> str:
    words = [f"NodeName={node}", f"Name={name}"]
    words += [f"Type={type_}"] if type_ else []
    words.append(f"{'MultipleFiles' if device.mig else 'File'}={','.join(device.files)}")
    return " ".join(words)

"""What a site's GPUs come to for one person in one resource group."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from portal.core.cluster.effective_limits import PLACE
from portal.core.cluster.fgpu import GpuKind, Slice, smallest
from portal.core.cluster.inventory import NodeGpus, Partition
from portal.core.units import fgpu_number, floor_size, format_fgpu
from portal.errors import FieldError

AMOUNT, KIND = "resources.fgpu", "resources.gpu_kind"


@dataclass(frozen=True)
class GpuOffer:
    """One kind of GPU in one resource group: all that may be asked for, and why not more."""

    kind: GpuKind
    amounts: tuple[Slice, ...]
    """Smallest first."""
    why: str


@dataclass(frozen=True)
class Gpus:
    """The kinds of GPUs that the site's settings name, in their order."""

    kinds: tuple[GpuKind, ...] = ()

    def named(self, name: str) -> GpuKind | None:
        """The kind of this name."""
        return next((kind for kind in self.kinds if kind.name == name), None)

    def title(self, name: str) -> str:
        """What people call it; its name where the settings do not know it any more."""
        kind = self.named(name)
        return kind.title if kind else name or "GPU"

    def within(self, group: Partition) -> Iterator[tuple[GpuKind, NodeGpus]]:
        """The kinds that a resource group has, with the most that one of its nodes has of each."""
        for kind in self.kinds:
            for found in group.gpus:
                if is_of(found, kind) and found.gpus:
                    yield kind, found
                    break

    def offers(self, group: Partition) -> list[GpuOffer]:
        """What may be asked for in a resource group, the proposed kind first."""
        found = (_offer(kind, most, group) for kind, most in self.within(group))
        return [offer for offer in found if offer.amounts]

    def grant(
        self,
        fgpu: float | None,
        kind_name: str | None,
        group: Partition | None,
        elsewhere: Iterable[Partition] = (),
    ) -> Slice | FieldError | None:
        """What a request for a GPU comes to, or why it never can; None where it asks for none.

        Without a group nothing is known of Slurm yet, so only the settings bound it.
        """
        if fgpu is None:
            return None
        if not self.kinds:
            return FieldError(AMOUNT, "there are no GPUs here")
        if group is None:
            return self._unbounded(fgpu, kind_name)
        found = dict(self.within(group))
        if not found:
            return FieldError(AMOUNT, _none_in(group, filter(self.offers, elsewhere)))
        kind = _choose(found, kind_name)
        if kind is None:
            return _unknown(found)
        offer = _offer(kind, found[kind], group)
        return smallest(offer.amounts, fgpu) or FieldError(AMOUNT, offer.why)

    def _unbounded(self, fgpu: float, name: str | None) -> Slice | FieldError:
        kind = _choose(self.kinds, name)
        if kind is None:
            return _unknown(self.kinds)
        found = kind.grant(fgpu, gpus=math.ceil(fgpu / float(kind.whole)) + 1)
        return found or FieldError(AMOUNT, _at_most(kind.whole))


NO_GPUS = Gpus()


def is_of(found: NodeGpus, kind: GpuKind) -> bool:
    """Whether a node's GPUs are of a kind; one without a name stands for all of them."""
    return kind.name in ("", found.kind)


def _offer(kind: GpuKind, most: NodeGpus, group: Partition) -> GpuOffer:
    # What comes after a limit is not offered, though Slurm limits shards and whole GPUs apart: who
    # may have half a GPU and asks for a whole one would be given two.
    there = [one for one in kind.amounts(most.gpus) if one.shards <= most.shards]
    for place, one in enumerate(there):
        if why := _too_much(one, kind, group):
            return GpuOffer(kind, tuple(there[:place]), why)
    return GpuOffer(kind, tuple(there), _at_most(there[-1].fgpu) if there else _unshared(kind))


def _too_much(one: Slice, kind: GpuKind, group: Partition) -> str:
    """Whose limit an amount goes against; "" where none does."""
    if one.shards and group.max_shards is not None and one.shards > group.max_shards:
        most, why = kind.fgpu(group.max_shards), group.too_much("shards")
    elif one.gpus and group.max_gpus is not None and one.gpus > group.max_gpus:
        most, why = kind.fgpu(0, group.max_gpus), group.too_much("gpus")
    else:
        return ""
    return why.replace(PLACE, format_fgpu(most))


def _at_most(fgpu: Fraction) -> str:
    return f"a session here can have {format_fgpu(fgpu)} at most"


def _unshared(kind: GpuKind) -> str:
    return f"Slurm has no shards of {kind.title} here; ask an administrator"


def _choose(kinds: Collection[GpuKind], name: str | None) -> GpuKind | None:
    """The named kind, else the first."""
    return next((kind for kind in kinds if not name or kind.name == name), None)


def _unknown(kinds: Iterable[GpuKind]) -> FieldError:
    names = ", ".join(kind.name for kind in kinds if kind.name)
    text = f"choose one of: {names}" if names else "GPUs have no kinds here; leave this out"
    return FieldError(KIND, text)


def _none_in(group: Partition, having: Iterable[Partition]) -> str:
    names = " or ".join(other.name for other in having)
    where = f"; choose the resource group {names}" if names else ""
    return f"{group.name} has no GPUs" + where


def share(memory_mb: int, sm_percent: int | None, kind: GpuKind | None = None) -> str:
    """What a slice has, in a sentence's words."""
    memory = f"{floor_size(memory_mb)} of GPU memory"
    if sm_percent is None or (kind is not None and kind.compute == "none"):
        return memory
    return f"{memory} and {sm_percent} % of the multiprocessors"


def unit_words(kind: GpuKind) -> str:
    """What 1 fGPU of a kind is."""
    part = "a whole GPU" if kind.unit == 1 else f"{fgpu_number(kind.unit)} of a GPU"
    memory_mb, sm_percent = int(kind.memory_mb * kind.unit), int(100 * kind.unit)
    return f"{kind.title}: 1 fGPU is {part}, with {share(memory_mb, sm_percent, kind)}"

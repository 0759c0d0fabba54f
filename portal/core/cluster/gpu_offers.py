"""The GPU amounts that one user can request in one resource group."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from portal.core.cluster.effective_limits import PLACEHOLDER
from portal.core.cluster.inventory import NodeGpus, Partition
from portal.core.units import fgpu_number, floor_size, format_fgpu
from portal.errors import FieldError
from portal.node.common.fgpu import GpuKind, Slice, of_gres, smallest

AMOUNT, KIND = "resources.fgpu", "resources.gpu_kind"


@dataclass(frozen=True)
class GpuOffer:
    """One kind of GPU in one resource group: the amounts on offer, and the limit on them."""

    kind: GpuKind
    amounts: tuple[Slice, ...]
    """Ascending."""
    why: str


@dataclass(frozen=True)
class Gpus:
    """The kinds of GPUs in the site's settings, in their order."""

    kinds: tuple[GpuKind, ...] = ()

    def named(self, name: str) -> GpuKind | None:
        """The kind of this name."""
        return next((kind for kind in self.kinds if kind.name == name), None)

    def title(self, name: str) -> str:
        """Its display name; its Slurm name if it is no longer in the settings."""
        kind = self.named(name)
        return kind.title if kind else name or "GPU"

    def amount(self, shards: int, gpus: int) -> Fraction | None:
        """A number of shards and whole GPUs in fGPU; None if both are 0.

        Also None if there are several kinds, since the numbers do not tell the kind.
        """
        if len(self.kinds) != 1 or not (shards or gpus):
            return None
        return self.kinds[0].fgpu(shards, gpus)

    def within(self, group: Partition) -> Iterator[tuple[GpuKind, NodeGpus]]:
        """The kinds in a resource group, with the largest GPU and shard numbers in one node."""
        for kind in self.kinds:
            for node_gpus in group.gpus:
                if is_of_kind(node_gpus, kind) and node_gpus.gpus:
                    yield kind, node_gpus
                    break

    def offers(self, group: Partition) -> list[GpuOffer]:
        """The amounts that can be requested in a resource group, the default kind first."""
        offers = (_offer(kind, most, group) for kind, most in self.within(group))
        return [offer for offer in offers if offer.amounts]

    def grant(
        self,
        fgpu: float | None,
        kind_name: str | None,
        group: Partition | None,
        elsewhere: Iterable[Partition] = (),
    ) -> Slice | FieldError | None:
        """The slice that a request is granted, or why it never can be; None without a request.

        Without a group nothing is known from Slurm yet, so only the settings limit it.
        """
        if fgpu is None:
            return None
        if not self.kinds:
            return FieldError(AMOUNT, "there are no GPUs here")
        if group is None:
            return self._unbounded(fgpu, kind_name)
        available = dict(self.within(group))
        if not available:
            return FieldError(AMOUNT, _none_in(group, filter(self.offers, elsewhere)))
        kind = _choose(available, kind_name)
        if kind is None:
            return _unknown(available)
        offer = _offer(kind, available[kind], group)
        return smallest(offer.amounts, fgpu) or FieldError(AMOUNT, offer.why)

    def _unbounded(self, fgpu: float, name: str | None) -> Slice | FieldError:
        kind = _choose(self.kinds, name)
        if kind is None:
            return _unknown(self.kinds)
        granted = kind.grant(fgpu, gpus=math.ceil(fgpu / float(kind.whole_gpu)) + 1)
        return granted or FieldError(AMOUNT, _at_most(kind.whole_gpu))


NO_GPUS = Gpus()


def is_of_kind(node_gpus: NodeGpus, kind: GpuKind) -> bool:
    """Whether a node's GPUs are of a kind; a kind without a name matches all of them."""
    return kind.name in ("", node_gpus.kind)


def has_gres(gres: str, kind: str, group: Partition) -> bool:
    """Whether some node of a group, as last reported, has the GPUs of a job's --gres."""
    shards, gpus = of_gres(gres)
    return any(
        kind in ("", node_gpus.kind) and node_gpus.shards >= shards and node_gpus.gpus >= gpus
        for node_gpus in group.gpus
    )


def _offer(kind: GpuKind, most: NodeGpus, group: Partition) -> GpuOffer:
    # Nothing above the first exceeded limit is offered, although Slurm limits shards and whole
    # GPUs separately: a user limited to half a GPU who requests a whole one would be granted two.
    amounts = [amount for amount in kind.amounts(most.gpus) if amount.shards <= most.shards]
    for position, amount in enumerate(amounts):
        if why := _too_much(amount, kind, group):
            return GpuOffer(kind, tuple(amounts[:position]), why)
    return GpuOffer(
        kind, tuple(amounts), _at_most(amounts[-1].fgpu) if amounts else _unshared(kind)
    )


def _too_much(amount: Slice, kind: GpuKind, group: Partition) -> str:
    """The limit that an amount exceeds, in words; "" if none."""
    if amount.shards and group.max_shards is not None and amount.shards > group.max_shards:
        most, why = kind.fgpu(group.max_shards), group.too_much("shards")
    elif amount.gpus and group.max_gpus is not None and amount.gpus > group.max_gpus:
        most, why = kind.fgpu(0, group.max_gpus), group.too_much("gpus")
    else:
        return ""
    return why.replace(PLACEHOLDER, format_fgpu(most))


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


def _none_in(group: Partition, alternatives: Iterable[Partition]) -> str:
    names = " or ".join(other.name for other in alternatives)
    where = f"; choose the resource group {names}" if names else ""
    return f"{group.name} has no GPUs" + where


def share(memory_mb: int, sm_percent: int | None, kind: GpuKind | None = None) -> str:
    """A slice's memory and multiprocessors, as part of a sentence."""
    memory = f"{floor_size(memory_mb)} of GPU memory"
    if sm_percent is None or (kind is not None and kind.compute == "none"):
        return memory
    return f"{memory} and {sm_percent} % of the multiprocessors"


def unit_words(kind: GpuKind) -> str:
    """The size of 1 fGPU of a kind, in words."""
    part = "a whole GPU" if kind.unit == 1 else f"{fgpu_number(kind.unit)} of a GPU"
    memory_mb, sm_percent = int(kind.memory_mb * kind.unit), int(100 * kind.unit)
    return f"{kind.title}: 1 fGPU is {part}, with {share(memory_mb, sm_percent, kind)}"

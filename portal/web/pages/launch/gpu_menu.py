"""The wizard's menu of GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from portal.core.cluster.gpu_offers import GpuOffer, share
from portal.core.units import fgpu_number, floor_size
from portal.node.common.fgpu import GpuKind, Slice, smallest


@dataclass(frozen=True)
class Option:
    """One option of the menu."""

    value: str
    """"type/amount", or the amount if GPUs have no types."""
    text: str
    about: str
    groups: tuple[str, ...]
    """The resource groups that offer it; () for an amount that is not offered."""
    chosen: bool = False


@dataclass(frozen=True)
class Menu:
    """The GPUs on offer in all resource groups together."""

    kinds: Mapping[str, GpuKind]
    """By heading."""
    options: Mapping[str, Sequence[Option]]
    not_offered: Option | None = None
    """The requested amount if it is not offered: an option for its error to refer to."""
    note: str = ""
    """A note that the requested amount was rounded up."""

    @property
    def chosen(self) -> Option | None:
        """The chosen option, if any."""
        options = (option for options in self.options.values() for option in options)
        return next((option for option in options if option.chosen), self.not_offered)


def menu(
    offers: Mapping[str, Sequence[GpuOffer]], group: str, entered: str, kind_name: str
) -> Menu | None:
    """The menu with the requested amount selected; None if there are no GPUs."""
    groups_of = _groups_of(offers)
    requested = _amount(entered)
    if not groups_of and requested is None:
        return None
    granted = _granted(offers.get(group, ()), requested, kind_name)
    kinds: dict[str, GpuKind] = {}
    options: dict[str, list[Option]] = {}
    for (kind, part), names in groups_of.items():
        heading = _heading(kind, _groups_with(offers, kind), len(offers))
        kinds[heading] = kind
        options.setdefault(heading, []).append(
            Option(
                value=_value(kind.name, part.fgpu),
                text=_text(kind, part),
                about=share(part.memory_mb, part.sm_percent, kind),
                groups=names,
                chosen=(kind, part) == granted,
            )
        )
    if requested is None or granted is not None:
        return Menu(kinds, options, note=_note(requested, granted))
    text = f"{fgpu_number(requested)} fGPU: not offered here"
    value = "/".join(filter(None, (kind_name, fgpu_number(requested))))
    return Menu(kinds, options, not_offered=Option(value, text, "", (), chosen=True))


def _groups_of(
    offers: Mapping[str, Sequence[GpuOffer]],
) -> dict[tuple[GpuKind, Slice], tuple[str, ...]]:
    """All amounts, each with the resource groups that offer it."""
    groups_of: dict[tuple[GpuKind, Slice], tuple[str, ...]] = {}
    for group, its_offers in offers.items():
        for offer in its_offers:
            for part in offer.amounts:
                key = offer.kind, part
                groups_of[key] = (*groups_of.get(key, ()), group)
    return dict(sorted(groups_of.items(), key=lambda item: (item[0][0].title, item[0][1].fgpu)))


def _groups_with(offers: Mapping[str, Sequence[GpuOffer]], kind: GpuKind) -> list[str]:
    return [name for name, its in offers.items() if any(kind == offer.kind for offer in its)]


def _heading(kind: GpuKind, groups: Sequence[str], of: int) -> str:
    where = f" in {', '.join(groups)}" if len(groups) < of else ""
    return f"{kind.title}, {floor_size(kind.memory_mb)}{where}"


def _text(kind: GpuKind, part: Slice) -> str:
    words = [f"{fgpu_number(part.fgpu)} fGPU", floor_size(part.memory_mb)]
    if part.gpus or part.shards == kind.shards:
        gpus = part.gpus or 1
        words.insert(1, "one whole GPU" if gpus == 1 else f"{gpus} whole GPUs")
    elif kind.compute != "none":
        words.append(f"{part.sm_percent} %")
    return " · ".join(words)


def _value(kind: str, amount: Fraction) -> str:
    return "/".join(filter(None, (kind, fgpu_number(amount))))


def _amount(text: str) -> float | None:
    try:
        amount = float(text)
    except ValueError:
        return None
    return amount if 0 < amount < math.inf else None


def _granted(
    offers: Sequence[GpuOffer], requested: float | None, kind_name: str
) -> tuple[GpuKind, Slice] | None:
    """The smallest sufficient amount of the requested type, or of the first type."""
    if requested is None:
        return None
    offer = next((offer for offer in offers if kind_name in ("", offer.kind.name)), None)
    if offer is None:
        return None
    part = smallest(offer.amounts, requested)
    return None if part is None else (offer.kind, part)


def _note(requested: float | None, granted: tuple[GpuKind, Slice] | None) -> str:
    if (
        requested is None
        or granted is None
        or fgpu_number(requested) == fgpu_number(granted[1].fgpu)
    ):
        return ""
    return (
        f"{fgpu_number(requested)} fGPU was requested, and is rounded up to "
        f"{fgpu_number(granted[1].fgpu)}: GPUs here are shared out in such steps."
    )

"""GPUs on pages: what can be chosen of them, and amounts of them in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from portal.core.cluster.effective_limits import size
from portal.core.cluster.fgpu import GpuKind, Slice, smallest
from portal.core.cluster.gpu_offers import GpuOffer


@dataclass(frozen=True)
class Option:
    """One line of the list to choose from."""

    value: str
    """Kind and amount, as kind/amount; the amount alone where GPUs have no kinds."""
    text: str
    about: str
    groups: tuple[str, ...]
    """The resource groups that have it; () for what was asked for and is not offered."""
    chosen: bool = False


@dataclass(frozen=True)
class Menu:
    """What the wizard offers of GPUs, in all resource groups together."""

    kinds: Mapping[str, GpuKind]
    """By the heading that their amounts stand under."""
    options: Mapping[str, Sequence[Option]]
    strange: Option | None = None
    """What was asked for, where it is not offered: it stays, so that its refusal can be read."""
    note: str = ""
    """That what was asked for has been rounded up."""

    @property
    def chosen(self) -> Option | None:
        """The amount that is chosen, if any."""
        all_of_them = (option for options in self.options.values() for option in options)
        return next((option for option in all_of_them if option.chosen), self.strange)


def number(amount: Fraction | float | None) -> str:
    """An amount of fGPU without needless zeros."""
    return f"{round(float(amount or 0), 3):g}"


def share(memory_mb: int, sm_percent: int | None, kind: GpuKind | None = None) -> str:
    """What a slice has, in a sentence's words."""
    memory = f"{size(memory_mb)} of GPU memory"
    if sm_percent is None or (kind is not None and kind.compute == "none"):
        return memory
    return f"{memory} and {sm_percent} % of the multiprocessors"


def unit_words(kind: GpuKind) -> str:
    """What 1 fGPU of a kind is."""
    part = "a whole GPU" if kind.unit == 1 else f"{number(kind.unit)} of a GPU"
    memory_mb, sm_percent = int(kind.memory_mb * kind.unit), int(100 * kind.unit)
    return f"{kind.title}: 1 fGPU is {part}, with {share(memory_mb, sm_percent, kind)}"


def menu(
    offers: Mapping[str, Sequence[GpuOffer]], group: str, asked: str, kind_name: str
) -> Menu | None:
    """The list to choose from, with what was asked for chosen; None where there are no GPUs."""
    homes = _homes(offers)
    wanted = _amount(asked)
    if not homes and wanted is None:
        return None
    granted = _granted(offers.get(group, ()), wanted, kind_name)
    kinds: dict[str, GpuKind] = {}
    options: dict[str, list[Option]] = {}
    for (kind, part), names in homes.items():
        heading = _heading(kind, _having(offers, kind), len(offers))
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
    if wanted is None or granted is not None:
        return Menu(kinds, options, note=_note(wanted, granted))
    text = f"{number(wanted)} fGPU: not offered here"
    value = "/".join(filter(None, (kind_name, number(wanted))))
    return Menu(kinds, options, strange=Option(value, text, "", (), chosen=True))


def _homes(
    offers: Mapping[str, Sequence[GpuOffer]],
) -> dict[tuple[GpuKind, Slice], tuple[str, ...]]:
    """All amounts, each with the resource groups that have it."""
    found: dict[tuple[GpuKind, Slice], tuple[str, ...]] = {}
    for group, its_offers in offers.items():
        for offer in its_offers:
            for part in offer.amounts:
                key = offer.kind, part
                found[key] = (*found.get(key, ()), group)
    return dict(sorted(found.items(), key=lambda item: (item[0][0].title, item[0][1].fgpu)))


def _having(offers: Mapping[str, Sequence[GpuOffer]], kind: GpuKind) -> list[str]:
    return [name for name, its in offers.items() if any(kind == offer.kind for offer in its)]


def _heading(kind: GpuKind, groups: Sequence[str], of: int) -> str:
    where = f" in {', '.join(groups)}" if len(groups) < of else ""
    return f"{kind.title}, {size(kind.memory_mb)}{where}"


def _text(kind: GpuKind, part: Slice) -> str:
    words = [f"{number(part.fgpu)} fGPU", size(part.memory_mb)]
    if part.gpus or part.shards == kind.shards:
        gpus = part.gpus or 1
        words.insert(1, "one whole GPU" if gpus == 1 else f"{gpus} whole GPUs")
    elif kind.compute != "none":
        words.append(f"{part.sm_percent} %")
    return " · ".join(words)


def _value(kind: str, amount: Fraction) -> str:
    return "/".join(filter(None, (kind, number(amount))))


def _amount(asked: str) -> float | None:
    try:
        found = float(asked)
    except ValueError:
        return None
    return found if 0 < found < math.inf else None


def _granted(
    offers: Sequence[GpuOffer], wanted: float | None, kind_name: str
) -> tuple[GpuKind, Slice] | None:
    """The smallest amount that is enough, of the kind that was asked for or of the first."""
    if wanted is None:
        return None
    offer = next((offer for offer in offers if kind_name in ("", offer.kind.name)), None)
    if offer is None:
        return None
    found = smallest(offer.amounts, wanted)
    return None if found is None else (offer.kind, found)


def _note(wanted: float | None, granted: tuple[GpuKind, Slice] | None) -> str:
    if wanted is None or granted is None or number(wanted) == number(granted[1].fgpu):
        return ""
    return (
        f"{number(wanted)} fGPU was asked for, and is rounded up to {number(granted[1].fgpu)}: "
        "GPUs here are shared out in such steps."
    )

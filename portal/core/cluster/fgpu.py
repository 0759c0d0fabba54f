"""Fractional GPUs: from the administrator's ratio to Slurm's shards, to bytes and to percent.

An administrator says how much of a GPU 1 fGPU is (`unit`) and in which steps it may be asked for.
A GPU is then cut into as many shards as make every such amount a whole number of them. This is the
one place that converts; root's helper on the nodes carries this file, too, so it needs nothing but
the standard library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

Sharing = Literal["shared", "whole", "mig"]
Compute = Literal["limiter", "mps", "none"]
"""How the share of the multiprocessors is kept: by the shim, by NVIDIA's MPS, or not at all."""

MIB = 1 << 20


@dataclass(frozen=True)
class GpuKind:
    """One kind of GPU at a site, and how it is shared out."""

    name: str
    """Its Type in gres.conf; "" where the GPUs have none."""
    title: str
    memory_mb: int
    unit: Fraction
    """How much of one GPU (of one MIG device) 1 fGPU is."""
    step: Fraction
    """The smallest difference between two amounts, in fGPU."""
    sharing: Sharing = "shared"
    compute: Compute = "limiter"

    @property
    def shards(self) -> int:
        """Shards that one GPU is cut into."""
        return (self.unit * self.step).denominator

    @property
    def whole(self) -> Fraction:
        """One whole GPU, in fGPU."""
        return 1 / self.unit

    def fgpu(self, shards: int, gpus: int = 0) -> Fraction:
        """What so many shards and whole GPUs are, in fGPU."""
        return Fraction(shards, self.shards) / self.unit + gpus * self.whole

    def amounts(self, gpus: int = 1) -> Iterator[Slice]:
        """All that may be asked for on a node with so many of these GPUs, smallest first."""
        if not gpus:
            return
        if self.sharing == "shared":
            per_step = (self.unit * self.step).numerator
            for shards in range(per_step, self.shards, per_step):
                yield self._slice(shards)
            yield self._slice(self.shards)  # all of one GPU, even between two steps
        else:
            yield self._slice(0, 1)
        if self.sharing != "mig":  # a program can use one MIG device only
            for number in range(2, gpus + 1):
                yield self._slice(0, number)

    def grant(self, asked: float, gpus: int = 1) -> Slice | None:
        """The smallest amount that is enough; None where no node has as much."""
        return smallest(self.amounts(gpus), asked)

    def _slice(self, shards: int, gpus: int = 0) -> Slice:
        memory = share_of(self.memory_mb * MIB, shards, self.shards) if shards else 0
        return Slice(
            kind=self.name,
            fgpu=self.fgpu(shards, gpus),
            shards=shards,
            gpus=gpus,
            memory_mb=memory // MIB if shards else gpus * self.memory_mb,
            sm_percent=percent_of(shards, self.shards) if shards else 100,
        )


@dataclass(frozen=True)
class Slice:
    """One amount that can be had: shards of one GPU, or whole GPUs."""

    kind: str
    fgpu: Fraction
    shards: int
    gpus: int
    memory_mb: int
    """Memory of all its parts together, as far as the settings know the GPU's."""
    sm_percent: int
    """Share of a GPU's multiprocessors."""

    @property
    def gres(self) -> str:
        """What sbatch is asked for (--gres)."""
        name, number = ("shard", self.shards) if self.shards else ("gpu", self.gpus)
        return ":".join(filter(None, (name, self.kind, str(number))))


def smallest(amounts: Iterable[Slice], asked: float) -> Slice | None:
    """The first of these amounts that is enough, smallest first; None where none is.

    They are compared as people write them, to three places: who asks for the 0.667 that they once
    got for two thirds gets the same again.
    """
    return next((one for one in amounts if to_number(one.fgpu) >= round(asked, 3)), None)


def of_gres(gres: str) -> tuple[int, int]:
    """Shards and whole GPUs of a `Slice.gres`; 0 of both of ""."""
    number = int(gres.rpartition(":")[2] or 0)
    return (number, 0) if gres.startswith("shard:") else (0, number)


def share_of(total: int, shards: int, of: int) -> int:
    """Bytes of a GPU's memory that shards stand for: whole MiB, so that all never exceed it."""
    return total * shards // of // MIB * MIB


def percent_of(shards: int, of: int) -> int:
    """Percent of the multiprocessors: rounded down, at least 1."""
    return max(1, 100 * shards // of)


def parse_ratio(written: object) -> Fraction:
    """A ratio of the settings, 0.25 or "1/3"; raises ValueError."""
    if isinstance(written, Fraction):
        return written
    if isinstance(written, bool) or not isinstance(written, (int, float, str)):
        raise ValueError('write a number, or a ratio such as "1/3"')
    try:
        return Fraction(written if isinstance(written, str) else repr(written))
    except (ValueError, ZeroDivisionError):
        raise ValueError('write a number, or a ratio such as "1/3"') from None


def to_number(amount: Fraction | float) -> float:
    """The number as people write it, to three places."""
    return round(float(amount), 3)


def kinds_as_json(kinds: tuple[GpuKind, ...]) -> list[dict[str, object]]:
    """The kinds as root's helper on the nodes reads them."""
    return [
        {
            "name": kind.name,
            "title": kind.title,
            "memory_mb": kind.memory_mb,
            "unit": str(kind.unit),
            "step": str(kind.step),
            "sharing": kind.sharing,
            "compute": kind.compute,
        }
        for kind in kinds
    ]


def kind_from_json(data: Mapping[str, str]) -> GpuKind:
    """One kind as `kinds_as_json` wrote it; raises KeyError or ValueError."""
    if data["sharing"] not in get_args(Sharing) or data["compute"] not in get_args(Compute):
        raise ValueError(f"unknown way of sharing: {data['sharing']}, {data['compute']}")
    return GpuKind(
        name=data["name"],
        title=data["title"],
        memory_mb=int(data["memory_mb"]),
        unit=Fraction(data["unit"]),
        step=Fraction(data["step"]),
        sharing=data["sharing"],  # type: ignore[arg-type]  # checked above
        compute=data["compute"],  # type: ignore[arg-type]
    )

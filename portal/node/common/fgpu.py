"""Fractional GPUs: conversion of the administrator's ratio to Slurm's shards, bytes and percent.

The settings define the part of a GPU that is 1 fGPU (`unit`) and the step between amounts. A GPU
is divided into the smallest number of shards that makes each amount a whole number of them. This
is the only module that converts between these units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

Sharing = Literal["shared", "whole", "mig"]
Compute = Literal["limiter", "mps", "none"]
"""The enforcement of the share of multiprocessors: the shim, NVIDIA's MPS, or none."""
Policy = Literal["strict", "fair"]
"""Whether GPU time that other sessions leave unused is lost or lent."""

MIB = 1 << 20
CONTEXT_MB = 512
"""MiB that a session's CUDA context takes beside its slice; the settings' default."""


@dataclass(frozen=True)
class GpuKind:
    """One kind of GPU at a site, and how it is shared."""

    name: str
    """Type in gres.conf; "" if the GPUs have none."""
    title: str
    memory_mb: int
    unit: Fraction
    """The part of one GPU (of one MIG device) that is 1 fGPU."""
    step: Fraction
    """The smallest difference between two amounts, in fGPU."""
    sharing: Sharing = "shared"
    compute: Compute = "limiter"
    policy: Policy = "strict"

    @property
    def shards(self) -> int:
        """Number of shards per GPU."""
        return (self.unit * self.step).denominator

    @property
    def whole_gpu(self) -> Fraction:
        """One whole GPU, in fGPU."""
        return 1 / self.unit

    @property
    def sessions(self) -> int:
        """The most sessions that can share one GPU."""
        return self.shards // (self.unit * self.step).numerator if self.sharing == "shared" else 1

    def fgpu(self, shards: int, gpus: int = 0) -> Fraction:
        """An amount of shards and whole GPUs, in fGPU."""
        return Fraction(shards, self.shards) / self.unit + gpus * self.whole_gpu

    def amounts(self, gpus: int = 1) -> Iterator[Slice]:
        """Yield every amount that can be requested on a node with `gpus` GPUs, ascending."""
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

    def grant(self, requested: float, gpus: int = 1) -> Slice | None:
        """The smallest sufficient amount; None if no node has that much."""
        return smallest(self.amounts(gpus), requested)

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
    """An amount that can be requested: shards of one GPU, or whole GPUs."""

    kind: str
    fgpu: Fraction
    shards: int
    gpus: int
    memory_mb: int
    """Total GPU memory, according to the settings."""
    sm_percent: int
    """Share of a GPU's multiprocessors."""

    @property
    def gres(self) -> str:
        """The value of sbatch's --gres."""
        name, number = ("shard", self.shards) if self.shards else ("gpu", self.gpus)
        return ":".join(filter(None, (name, self.kind, str(number))))

    @property
    def step_gres(self) -> str:
        """The value of srun's --gres for the whole slice: steps do not inherit typed shards."""
        return f"shard:{self.shards}" if self.shards else self.gres


def smallest(amounts: Iterable[Slice], requested: float) -> Slice | None:
    """The first of these ascending amounts that is sufficient; None if none is.

    Compared to three decimals, as amounts are displayed: a request for 0.667, as shown for two
    thirds, is granted two thirds.
    """
    return next(
        (amount for amount in amounts if to_number(amount.fgpu) >= round(requested, 3)), None
    )


def of_gres(gres: str) -> tuple[int, int]:
    """Shards and whole GPUs of a `Slice.gres`; (0, 0) for ""."""
    number = int(gres.rpartition(":")[2] or 0)
    return (number, 0) if gres.startswith("shard:") else (0, number)


def share_of(total: int, shards: int, of: int) -> int:
    """Bytes of GPU memory for a number of shards: whole MiB, so that the sum never exceeds it."""
    return total * shards // of // MIB * MIB


def percent_of(shards: int, of: int) -> int:
    """Percent of the multiprocessors: rounded down, at least 1."""
    return max(1, 100 * shards // of)


def parse_ratio(value: object) -> Fraction:
    """Parse a ratio of the settings, 0.25 or "1/3"; raises ValueError."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError('write a number, or a ratio such as "1/3"')
    try:
        return Fraction(value if isinstance(value, str) else repr(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError('write a number, or a ratio such as "1/3"') from None


def to_number(amount: Fraction | float) -> float:
    """The amount rounded to three decimals, as displayed."""
    return round(float(amount), 3)


def kinds_as_json(kinds: tuple[GpuKind, ...]) -> list[dict[str, object]]:
    """The kinds in the format that root's helper on the nodes reads."""
    return [
        {
            "name": kind.name,
            "title": kind.title,
            "memory_mb": kind.memory_mb,
            "unit": str(kind.unit),
            "step": str(kind.step),
            "sharing": kind.sharing,
            "compute": kind.compute,
            "policy": kind.policy,
        }
        for kind in kinds
    ]


def kind_from_json(data: Mapping[str, str]) -> GpuKind:
    """Parse one kind written by `kinds_as_json`; raises KeyError or ValueError.

    Files of earlier versions have no `policy`.
    """
    policy = data.get("policy", "strict")
    if policy not in get_args(Policy):
        raise ValueError(f"policy: {policy!r} is none of {', '.join(get_args(Policy))}")
    if data["sharing"] not in get_args(Sharing) or data["compute"] not in get_args(Compute):
        raise ValueError(f"unknown sharing mode: {data['sharing']}, {data['compute']}")
    return GpuKind(
        name=data["name"],
        title=data["title"],
        memory_mb=int(data["memory_mb"]),
        unit=Fraction(data["unit"]),
        step=Fraction(data["step"]),
        sharing=data["sharing"],  # type: ignore[arg-type]  # checked above
        compute=data["compute"],  # type: ignore[arg-type]
        policy=policy,  # type: ignore[arg-type]
    )

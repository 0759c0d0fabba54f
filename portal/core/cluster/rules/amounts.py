"""Amounts of the resources that Slurm counts and limits (TRES)."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class Tres:
    """Cores, MiB of memory, GPU shards and whole GPUs; None for a resource without a value."""

    cpus: int | None = None
    memory_mb: int | None = None
    shards: int | None = None
    gpus: int | None = None

    def or_else(self, other: Tres) -> Tres:
        """These values, with those of `other` for the missing ones."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tres(*(default if value is None else value for value, default in pairs))

    def beside(self, other: Tres) -> Tres:
        """Only the values for resources without a value in `other`."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tres(*(value if other_value is None else None for value, other_value in pairs))


@dataclass(frozen=True)
class Minutes:
    """Amounts over time, as in GrpTRESMins: minutes of cores, GPUs and shards, MiB times minutes.

    None for a resource without a value.
    """

    cpus: int | None = None
    memory_mb: int | None = None
    shards: int | None = None
    gpus: int | None = None


NO_TRES = Tres()
NO_MINUTES = Minutes()

"""Amounts of what Slurm counts and limits."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class Tres:
    """Cores, MiB of memory, GPU shards and whole GPUs; None where nothing is set."""

    cpus: int | None = None
    memory_mb: int | None = None
    shards: int | None = None
    gpus: int | None = None

    def or_else(self, other: Tres) -> Tres:
        """The same, with the other's values where this one has none."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tres(*(theirs if own is None else own for own, theirs in pairs))

    def beside(self, other: Tres) -> Tres:
        """Only the values that the other one does not set."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tres(*(own if theirs is None else None for own, theirs in pairs))


@dataclass(frozen=True)
class Minutes:
    """Amounts over time, as in GrpTRESMins: minutes of cores, GPUs and shards, MiB times minutes.

    None where nothing is set.
    """

    cpus: int | None = None
    memory_mb: int | None = None
    shards: int | None = None
    gpus: int | None = None


NO_TRES = Tres()
NO_MINUTES = Minutes()

"""Slurm's lists of generic resources (GRES): "gpu:a100:2(S:0-1),shard:a100:8"."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(
    r"(?P<name>\w+)(?::(?P<type>[\w.-]+))??(?::(?P<count>\d+))?(?:\((?P<detail>[^)]*)\))?"
)
_SHARES = re.compile(r"(\d+)/(\d+)")
_SEPARATOR = re.compile(r",(?![^()]*\))")


@dataclass(frozen=True)
class Gres:
    """One entry of a list: an amount of one resource."""

    name: str
    type: str
    """"" if the entry has none."""
    count: int
    shares: tuple[tuple[int, int], ...] = ()
    """For a job's shards: (allocated, total) of each of its GPUs, in the node's order."""


def split_gres(text: str) -> list[str]:
    """Split a list into its entries, whose details in parentheses may contain commas."""
    return _SEPARATOR.split(text) if text else []


def parse_gres(entry: str, default: int | None = None) -> Gres:
    """Parse NAME[:TYPE][:COUNT][(DETAIL)]; raises ValueError, also without a count or default."""
    match = _ENTRY.fullmatch(entry)
    count = match["count"] or default if match else None
    if match is None or count is None:
        raise ValueError(f"unknown GRES format: {entry!r}")
    shares = (
        (int(allocated), int(total)) for allocated, total in _SHARES.findall(match["detail"] or "")
    )
    return Gres(
        name=match["name"],
        type=match["type"] or "",
        count=int(count),
        shares=tuple((allocated, total) for allocated, total in shares if allocated),
    )

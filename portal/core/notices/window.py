"""Slurm's own maintenance reservations, and which launches would wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from portal.core.cluster.limits import Reservation

FLAG = "MAINT"
"""The flag of reservations for maintenance."""


@dataclass(frozen=True)
class Window:
    """Maintenance that a launch would have to wait for."""

    begins: datetime
    """When the last of the nodes is reserved; in the past if maintenance is going on."""
    over: datetime | None
    """When the first of them is free again; None if a reservation has no end."""
    minutes: int
    """The longest time limit that could start now, in minutes; 0: none."""


def window(
    reservations: Iterable[Reservation], nodes: Sequence[str], now: datetime
) -> Window | None:
    """The maintenance that all of these nodes have, now or to come; None if one has none.

    Nodes that are reserved at different times count as the one that is free for the longest.
    """
    planned = [one for one in reservations if FLAG in one.flags and _to_come(one, now)]
    firsts = [_first(planned, node) for node in nodes]
    found = [one for one in firsts if one is not None]
    if not found or len(found) < len(nodes):
        return None
    begins = max(begin for begin, _ in found)
    ends = [end for _, end in found if end is not None]
    minutes = int(max((begins - now).total_seconds(), 0) // 60)
    return Window(begins, min(ends, default=None), minutes)


def waits_for(found: Window | None, time_limit: int | None) -> Window | None:
    """The maintenance if a launch with this time limit, in minutes, would wait for it."""
    if found is None or (time_limit is not None and time_limit <= found.minutes):
        return None
    return found


def _to_come(one: Reservation, now: datetime) -> bool:
    return one.start is not None and (one.end is None or one.end > now)


def _first(planned: Iterable[Reservation], node: str) -> tuple[datetime, datetime | None] | None:
    return min(
        ((one.start, one.end) for one in planned if node in one.nodes and one.start),
        key=lambda times: times[0],
        default=None,
    )

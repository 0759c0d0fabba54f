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
    """Start of the reservation that comes last; in the past during maintenance."""
    over: datetime | None
    """When the first node is free again; None if a reservation has no end."""
    minutes: int
    """The longest time limit that could start now, in minutes; 0: none."""


def window(
    reservations: Iterable[Reservation], nodes: Sequence[str], now: datetime
) -> Window | None:
    """The current or next maintenance of all these nodes; None if a node has none.

    If nodes are reserved at different times, the node that is free for the longest counts.
    """
    planned = [r for r in reservations if FLAG in r.flags and _to_come(r, now)]
    first_periods = [_first(planned, node) for node in nodes]
    periods = [period for period in first_periods if period is not None]
    if not periods or len(periods) < len(nodes):
        return None
    begins = max(begin for begin, _ in periods)
    ends = [end for _, end in periods if end is not None]
    minutes = int(max((begins - now).total_seconds(), 0) // 60)
    return Window(begins, min(ends, default=None), minutes)


def waits_for(window: Window | None, time_limit: int | None) -> Window | None:
    """The maintenance if a launch with this time limit, in minutes, would wait for it."""
    if window is None or (time_limit is not None and time_limit <= window.minutes):
        return None
    return window


def _to_come(reservation: Reservation, now: datetime) -> bool:
    return reservation.start is not None and (reservation.end is None or reservation.end > now)


def _first(planned: Iterable[Reservation], node: str) -> tuple[datetime, datetime | None] | None:
    return min(
        ((r.start, r.end) for r in planned if node in r.nodes and r.start),
        key=lambda times: times[0],
        default=None,
    )

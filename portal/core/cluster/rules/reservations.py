"""Reservations and features of nodes, as read from Slurm."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Reservation:
    """A reservation of nodes, and its access rules."""

    name: str
    start: datetime | None = None
    end: datetime | None = None
    active: bool = False
    partition: str = ""
    """The partition to which it is restricted; "" for any."""
    nodes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    not_users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    not_accounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    """AllowedQOS; () for all."""
    features: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeFeatures:
    """The features of one node of a partition, for --constraint."""

    node: str
    partition: str
    features: tuple[str, ...] = ()

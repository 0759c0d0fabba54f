"""Several portal hosts on one database: how long each may serve without reading it.

A host is open while its HAProxy serves apps. Every open host must remove revoked keys, and a host
that does not follow the database shuts itself off, before others rely on that:

    its agent reads the database          every LOOK_SECONDS
    its agent reports it as shut off      OPEN_SECONDS after the last successful read
    its HAProxy closes the apps           CHECKS failed checks, CHECK_SECONDS apart, after that, or
                                          after the agent's death
    others rely on its being shut off     SHUT_SECONDS after the last read that it reported
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from portal.core.session.idle import Traffic

LOOK_SECONDS = 0.3
OPEN_SECONDS = 1.0
CHECK_SECONDS = 0.5
CHECK_TIMEOUT_SECONDS = 0.2
CHECKS = 7
SHUT_SECONDS = 6.0
"""More than OPEN_SECONDS + CHECKS * CHECK_SECONDS, and than CHECKS checks without an answer."""
LEASE_SECONDS = 6.0
"""A worker that has not renewed its lease for so long is dead: another takes over."""
RENEW_SECONDS = 1.0
GIVE_UP_SECONDS = 4.0
"""A worker that could not renew its lease for so long ends itself."""
FORGET_SECONDS = 30 * 86400.0
"""Hosts that were not seen for so long are no longer listed."""


@dataclass(frozen=True)
class Removal:
    """A revoked key; `since` tells an earlier revocation of the same key from a later one."""

    key: str
    since: datetime


@dataclass(frozen=True)
class View:
    """A host's state in the database, from one read."""

    silent: float | None
    """Seconds since it last reported, by the database's clock; None if it is not registered."""
    machine: str
    """The machine that last reported under its name."""
    pending: tuple[Removal, ...]
    """Revoked keys whose removal this host has not confirmed."""

    @property
    def is_counted_on(self) -> bool:
        """Whether no other host has relied on its being shut off since it last reported."""
        return self.silent is not None and self.silent < SHUT_SECONDS - 1.0


@dataclass(frozen=True)
class HostStatus:
    """A portal host, as reported in the database."""

    name: str
    silent: float
    """Seconds since it last reported."""
    traffic: Mapping[str, Traffic] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether it may serve apps."""
        return self.silent < SHUT_SECONDS


@dataclass(frozen=True)
class Holder:
    """The worker that acts for all hosts."""

    host: str
    pid: int
    since: datetime
    silent: float
    """Seconds since it last renewed its lease."""

    def __str__(self) -> str:
        return f"{self.host} (process {self.pid}) since {self.since:%Y-%m-%d %H:%M:%S} UTC"

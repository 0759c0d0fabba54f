"""Interfaces of several portal hosts on one database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from portal.core.hosts import Holder, HostStatus, Removal, View
from portal.core.session.idle import Traffic


class HostStore(Protocol):
    """The portal's hosts, and which of them have carried out which revocation."""

    def look(self, host: str) -> View:
        """What a host has to know, in one query."""
        ...

    def report(self, host: str, machine: str) -> None:
        """Note that a host follows the database, from now on for SHUT_SECONDS."""
        ...

    def pending(self, host: str, keys: Collection[str]) -> list[Removal]:
        """Those of these keys that are revoked and that this host has not confirmed."""
        ...

    def confirm(self, host: str, removals: Collection[Removal]) -> None:
        """Note that a host's HAProxy has removed these keys and cut their connections."""
        ...

    def unconfirmed(self, removals: Collection[Removal]) -> list[str]:
        """The hosts that may still serve one of these keys."""
        ...

    def settle(self) -> None:
        """Forget the revocations that no host serves any more."""
        ...

    def note_traffic(self, host: str, traffic: Mapping[str, Traffic]) -> None:
        """Store what a host's HAProxy has counted."""
        ...

    def hosts(self) -> Sequence[HostStatus]:
        """All hosts that were seen lately, by name."""
        ...


class LeaseStore(Protocol):
    """The lease of the one worker that acts for all hosts."""

    def acquire(self, host: str, pid: int) -> int | None:
        """Take the lease if it is free or its holder is silent; its number, or None."""
        ...

    def renew(self, number: int) -> bool:
        """Keep the lease; False if another worker has it."""
        ...

    def release(self, number: int) -> None:
        """Give the lease back, if this worker has it."""
        ...

    def holder(self) -> Holder | None:
        """The worker that has the lease, or had it and is silent; None if it was given back."""
        ...

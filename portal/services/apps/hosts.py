"""Revocations that every portal host's HAProxy carries out."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from portal.core.hosts import SHUT_SECONDS, Removal
from portal.core.session.idle import Traffic
from portal.errors import StillOpen
from portal.store.access import AccessStore
from portal.store.hosts import HostStore

WAIT_SECONDS = SHUT_SECONDS + 2.0
"""How long a request waits for the other hosts; one that does not report for SHUT_SECONDS is
shut off."""
_PAUSE = 0.05
_ANY_TIME = datetime.min


class Hosts(Protocol):
    """The portal's hosts, each of which has to remove revoked routes from its HAProxy."""

    def pending(self, keys: Collection[str] | None = None) -> Sequence[Removal]:
        """Revocations that this host has to carry out: all, or those of these keys."""
        ...

    def confirm(self, removals: Collection[Removal]) -> None:
        """Store that this host's HAProxy has carried them out."""
        ...

    def await_others(self, removals: Collection[Removal]) -> None:
        """Wait until every host has removed these keys; raises StillOpen."""
        ...

    def traffic(self, this_host: Mapping[str, Traffic]) -> dict[str, Traffic]:
        """The traffic that all hosts have counted; `this_host`: the counters of this one."""
        ...


class OneHost(Hosts):
    """The only host."""

    def __init__(self, store: AccessStore) -> None:
        self._store = store

    def pending(self, keys: Collection[str] | None = None) -> Sequence[Removal]:
        if keys is None:
            return self._store.pending_removals()
        return [Removal(key, _ANY_TIME) for key in keys]  # without a query: only the keys count

    def confirm(self, removals: Collection[Removal]) -> None:
        self._store.removed([removal.key for removal in removals])

    def await_others(self, removals: Collection[Removal]) -> None:
        pass

    def traffic(self, this_host: Mapping[str, Traffic]) -> dict[str, Traffic]:
        return dict(this_host)


class SeveralHosts(Hosts):
    """One of several hosts on the same database."""

    def __init__(
        self, store: HostStore, host: str, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._store = store
        self._host = host
        self._pause = pause

    def pending(self, keys: Collection[str] | None = None) -> Sequence[Removal]:
        if keys is None:
            return self._store.view(self._host).pending
        return self._store.pending(self._host, keys)

    def confirm(self, removals: Collection[Removal]) -> None:
        self._store.confirm(self._host, removals)

    def await_others(self, removals: Collection[Removal]) -> None:
        waited = 0.0
        while removals and self._store.unconfirmed(removals):
            if waited >= WAIT_SECONDS:
                raise StillOpen
            self._pause(_PAUSE)
            waited += _PAUSE
        if removals:
            self._store.settle()

    def traffic(self, this_host: Mapping[str, Traffic]) -> dict[str, Traffic]:
        requests: dict[str, int] = defaultdict(int)
        sent: dict[str, int] = defaultdict(int)
        others = [host.traffic for host in self._store.hosts() if host.name != self._host]
        for counted in [this_host, *others]:
            for name, traffic in counted.items():
                requests[name] += traffic.requests
                sent[name] += traffic.bytes
        return {name: Traffic(requests[name], sent[name]) for name in requests}

"""Keeps one of several portal hosts in step with the database, or HAProxy shuts it off."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from portal.core.hosts import OPEN_SECONDS, SHUT_SECONDS, View
from portal.core.interfaces.systems import Routes
from portal.errors import PortalError
from portal.services.apps.proxy import ProxyRoutes
from portal.store.hosts import HostStore

log = logging.getLogger(__name__)


class HostTaken(PortalError):
    """Another machine reports under this host's name."""


class HostAgent:
    """Carries out revocations at this host's HAProxy and reports that to the others.

    HAProxy asks `is_open` (adapters/haproxy/agent.py), and closes the apps by itself if the
    answer is no or missing.
    """

    def __init__(
        self,
        *,
        store: HostStore,
        host: str,
        machine: str,
        routes: Routes,
        proxy: ProxyRoutes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._host = host
        self._machine = machine
        self._routes = routes
        self._proxy = proxy
        self._clock = clock
        self._last_success: float | None = None
        """Start time of the last complete `follow`."""

    def is_open(self) -> bool:
        """Whether this host has completed `follow` within OPEN_SECONDS."""
        last_success = self._last_success
        return last_success is not None and self._clock() - last_success < OPEN_SECONDS

    def follow(self) -> None:
        """Read the database once, and carry out pending revocations.

        Raises Unavailable while HAProxy does not answer, HostTaken, or the database's errors: then
        this host is not open for longer than OPEN_SECONDS.
        """
        started = self._clock()
        lost = self._routes.is_lost()
        view = self._store.view(self._host)
        reports = view.silent is not None and view.silent < SHUT_SECONDS
        if reports and self._machine != view.machine:
            text = f"another machine reports as the host {self._host}: set state.host_name"
            raise HostTaken(text)
        if self._may_have_missed_revocations(view, started):
            self._catch_up()
        elif lost:
            self._proxy.restore()
        self._proxy.retry_revocations()
        self._store.report(self._host, self._machine)
        self._last_success = started

    def _may_have_missed_revocations(self, view: View, now: float) -> bool:
        """Whether other hosts may have stopped waiting for this one, as if it were shut off."""
        last_success = self._last_success
        since = SHUT_SECONDS if last_success is None else now - last_success
        return not view.is_counted_on or since > SHUT_SECONDS - 1.0

    def _catch_up(self) -> None:
        """Report to the other hosts, then make the whole map match.

        In the other order this host would miss revocations that are stored meanwhile.
        """
        log.info("host %s: comparing all routes before the apps are opened", self._host)
        self._store.report(self._host, self._machine)
        self._proxy.restore()
        self._proxy.check_routes()

    def compare(self) -> None:
        """Add the routes that other hosts have opened, and remove wrong ones."""
        self._proxy.check_routes()

    def settle(self) -> None:
        """Forget the revocations that every host has carried out."""
        self._store.settle()

    def note_traffic(self) -> None:
        """Store the traffic counters of this host's HAProxy for the worker."""
        self._store.note_traffic(self._host, self._routes.traffic())

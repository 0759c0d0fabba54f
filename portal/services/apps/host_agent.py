"""Keeps one of several portal hosts in step with the database, or lets it be shut off."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from portal.config import StateSettings
from portal.core.hosts import OPEN_SECONDS, SHUT_SECONDS, View
from portal.core.interfaces.systems import Routes
from portal.errors import PortalError
from portal.services.apps.hosts import Hosts, OneHost, SeveralHosts
from portal.services.apps.proxy import ProxyRoutes
from portal.services.systems import Stores, Systems
from portal.store.hosts import HostStore

log = logging.getLogger(__name__)


class HostTaken(PortalError):
    """Another machine reports under this host's name."""


class HostAgent:
    """Carries out revocations at this host's HAProxy and reports that to the others.

    HAProxy asks `is_open` (adapters/haproxy/agent.py), and closes the apps by itself where the
    answer is no, or where there is none.
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
        self._looked: float | None = None
        """When the last look began that was carried out completely."""

    def is_open(self) -> bool:
        """Whether this host has followed the database lately."""
        looked = self._looked
        return looked is not None and self._clock() - looked < OPEN_SECONDS

    def follow(self) -> None:
        """Look once, and carry out what was revoked.

        Raises Unavailable while HAProxy does not answer, HostTaken, or the database's errors: then
        this host is not open for longer than OPEN_SECONDS.
        """
        begun = self._clock()
        lost = self._routes.is_lost()
        view = self._store.look(self._host)
        reports = view.silent is not None and view.silent < SHUT_SECONDS
        if reports and self._machine != view.machine:
            text = f"another machine reports as the host {self._host}: set state.host_name"
            raise HostTaken(text)
        if self._has_missed_some(view, begun):
            self._catch_up()
        elif lost:
            self._proxy.restore()
        self._proxy.retry_revocations()
        self._store.report(self._host, self._machine)
        self._looked = begun

    def _has_missed_some(self, view: View, now: float) -> bool:
        """Whether others may have relied on this host's being shut off."""
        looked = self._looked
        since = SHUT_SECONDS if looked is None else now - looked
        return not view.is_counted_on or since > SHUT_SECONDS - 1.0

    def _catch_up(self) -> None:
        """Make the whole map match; first of all, be counted on again.

        In the other order, what is revoked meanwhile would be told to nobody.
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
        """Tell the worker's host what this host's HAProxy has counted."""
        self._store.note_traffic(self._host, self._routes.traffic())


def hosts_of(settings: StateSettings, stores: Stores) -> Hosts:
    """This host, alone or as one of several."""
    if settings.several_hosts:
        return SeveralHosts(stores.hosts, settings.this_host)
    return OneHost(stores.access)


def agent_of(settings: StateSettings, systems: Systems, proxy: ProxyRoutes) -> HostAgent | None:
    """The agent of one of several hosts; None for the only one."""
    if not settings.several_hosts:
        return None
    return HostAgent(
        store=systems.stores.hosts,
        host=settings.this_host,
        machine=systems.machine,
        routes=systems.routes,
        proxy=proxy,
    )

"""Starting apps in sessions: the wish is stored, the order to the runner may be repeated."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

from portal.core.access import AppState, OpenApp
from portal.core.app import AppSpec, Catalog
from portal.core.ports import Runners
from portal.core.session import Session
from portal.core.stores import AccessStore
from portal.errors import Unavailable

log = logging.getLogger(__name__)


class Starts:
    """Has the runners start what somebody waits for."""

    def __init__(
        self,
        store: AccessStore,
        runners: Runners,
        catalog: Callable[[], Catalog],
        origin: Callable[[str], str],
    ) -> None:
        self._store = store
        self._runners = runners
        self._catalog = catalog
        self._origin = origin

    def start(self, session: Session, spec: AppSpec, opened: OpenApp) -> AppState:
        """Ask the runner for a server, unless it is on its way already."""
        if opened.state in (AppState.READY, AppState.STARTING) or session.ready is None:
            return opened.state
        try:
            self._runners.start_app(session, self._order(spec, opened))
        except Unavailable as error:
            # The worker asks again: the wish is stored.
            log.warning("session %s: %s not started yet: %s", session.id, spec.name, error)
            return AppState.WANTED
        if self._store.app_starts(opened):
            return AppState.STARTING
        # Its owner has given another answer since it was read: it is started again with that.
        log.info("session %s: %s starts again with another answer", session.id, spec.name)
        with contextlib.suppress(Unavailable):
            self._runners.stop_app(session, spec.name)
        self._store.set_app(session.id, spec.name, AppState.WANTED, "", "")
        return AppState.WANTED

    def stop(self, session: Session, server: str) -> None:
        """Have a server end, so that it can be started in another way; raises Unavailable."""
        self._runners.stop_app(session, server)
        self._store.set_app(session.id, server, AppState.STOPPED, "", "")

    def wanted(self, session: Session) -> list[dict[str, object]]:
        """The orders for all apps that somebody waits for; they count as starting from now on."""
        orders = []
        for spec, opened in self._waiting(session):
            if self._store.app_starts(opened):  # if not, the worker starts it a moment later
                orders.append(self._order(spec, opened))
        return orders

    def start_wanted(self, session: Session) -> None:
        """Ask again for apps whose order did not reach the runner."""
        for spec, opened in self._waiting(session):
            self.start(session, spec, opened)

    def _waiting(self, session: Session) -> list[tuple[AppSpec, OpenApp]]:
        apps = self._catalog().apps
        pairs = [(apps.get(opened.app), opened) for opened in self._store.apps(session.id)]
        return [
            (spec, opened)
            for spec, opened in pairs
            if spec is not None and not spec.shares and opened.state is AppState.WANTED
        ]

    def _order(self, spec: AppSpec, opened: OpenApp) -> dict[str, object]:
        return {
            "name": spec.name,
            "script": spec.script,
            "ready": spec.ready,
            "timeout": spec.timeout,
            "kind": spec.kind,
            "listen": spec.listen,
            "asked": opened.asked,
            "origin": self._origin(opened.label) if spec.kind == "web" else "",
            "busy": spec.busy,
            "busy_when": spec.busy_when,
        }

"""Starts apps in sessions; pending starts are stored, so that lost requests can be repeated."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

from portal.core.apps.access import AppState, OpenApp
from portal.core.apps.catalog import AppSpec, Catalog
from portal.core.interfaces.systems import Runners
from portal.core.session.session import Session
from portal.core.session_job.runner_protocol import StartRequest
from portal.errors import Unavailable
from portal.store.access import AccessStore

log = logging.getLogger(__name__)


class AppStarter:
    """Sends start and stop requests to runners."""

    def __init__(
        self,
        store: AccessStore,
        runners: Runners,
        catalog: Callable[[], Catalog],
        origin: Callable[[str], str],
        hub_env: Callable[[str], dict[str, str]],
    ) -> None:
        self._store = store
        self._hub_env = hub_env
        self._runners = runners
        self._catalog = catalog
        self._origin = origin

    def start(self, session: Session, spec: AppSpec, opened: OpenApp) -> AppState:
        """Send a start request to the runner if the app is not running; returns its state.

        WANTED: the runner does not answer; the app is started as soon as it does.
        """
        if not self.has_to_start(session, opened):
            return opened.state
        try:
            self._runners.start_app(session, self._request(session, spec, opened))
        except Unavailable as error:
            # The worker retries (retry_pending), also for an app that had failed or was stopped.
            log.warning("session %s: %s not started yet: %s", session.id, spec.name, error)
            if opened.state is not AppState.WANTED:
                self._store.set_app(session.id, spec.name, AppState.WANTED, "", "")
            return AppState.WANTED
        if self._store.set_starting(opened):
            return AppState.STARTING
        # Its owner has changed the answer in the meantime: restart it with the new one.
        log.info("session %s: %s restarts with another answer", session.id, spec.name)
        with contextlib.suppress(Unavailable):
            self._runners.stop_app(session, spec.name)
        self._store.set_app(session.id, spec.name, AppState.WANTED, "", "")
        return AppState.WANTED

    @staticmethod
    def has_to_start(session: Session, opened: OpenApp) -> bool:
        """Whether an app is neither running nor starting, and its runner has called back."""
        return session.ready is not None and opened.state not in (AppState.READY, AppState.STARTING)

    def stop(self, session: Session, server: str) -> None:
        """Stop an app and wait until it has ended; raises Unavailable."""
        self._runners.stop_app(session, server)
        self._store.set_app(session.id, server, AppState.STOPPED, "", "")

    def pending_starts(self, session: Session) -> list[StartRequest]:
        """Start requests for all WANTED apps, which become STARTING."""
        requests = []
        for spec, opened in self._pending(session):
            if self._store.set_starting(opened):  # if not, retry_pending starts it
                requests.append(self._request(session, spec, opened))
        return requests

    def retry_pending(self, session: Session) -> None:
        """Repeat start requests that did not reach the runner. Idempotent."""
        for spec, opened in self._pending(session):
            self.start(session, spec, opened)

    def _pending(self, session: Session) -> list[tuple[AppSpec, OpenApp]]:
        apps = self._catalog().apps
        pairs = [(apps.get(opened.app), opened) for opened in self._store.apps(session.id)]
        return [
            (spec, opened)
            for spec, opened in pairs
            if spec is not None and not spec.shares and opened.state is AppState.WANTED
        ]

    def _request(self, session: Session, spec: AppSpec, opened: OpenApp) -> StartRequest:
        of_hub = spec.kind == "hub"
        return {
            "name": spec.name,
            "script": spec.script,
            "ready": session.hub_prefix.rstrip("/") + spec.ready if of_hub else spec.ready,
            "timeout": spec.timeout,
            "kind": spec.kind,
            "listen": spec.listen,
            "asked": opened.asked,
            "origin": self._origin(opened.label) if spec.kind == "web" else "",
            "busy": spec.busy,
            "busy_when": spec.busy_when,
            "session_name": session.name,
            "env": self._hub_env(session.id) if of_hub else {},
        }

"""Starts and stops the apps of the session, and reports their states."""

from __future__ import annotations

import threading
import time

from ..spec import AppStart
from .app import App

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class UnknownApp(LookupError):
    """This session has no app of this name."""


class Supervisor:
    """The apps that the session's image offers; each is started on demand."""

    def __init__(
        self,
        names: Iterable[str],
        directory: str,
        toolkit: str,
        changed: Callable[[App], None],
        env: Mapping[str, str] | None = None,
        workdir: str = "",
    ) -> None:
        self._apps = {name: App(name, directory, toolkit, changed, env, workdir) for name in names}
        self._ending = False

    def start(self, description: AppStart) -> None:
        """Start an app, or restart it if it has failed or been stopped; raise UnknownApp."""
        app = self._app(description.name)
        if not self._ending:
            app.start(description)

    def stop(self, name: str, grace: float = 3.0) -> None:
        """Stop an app, killing it after `grace` seconds; raise UnknownApp."""
        self._app(name).stop(grace)

    def states(self) -> dict[str, str]:
        """The state of every app that was ever started."""
        return {name: app.state for name, app in self._apps.items() if app.started}

    def busy(self) -> list[str]:
        """The apps that are computing, used or not."""
        return [name for name, app in self._apps.items() if app.busy()]

    def stop_all(self, grace: float) -> None:
        """Stop all apps concurrently, killing them after `grace` seconds."""
        self._ending = True
        running = [app for app in self._apps.values() if app.running]
        for app in running:
            app.ask_to_end()
        deadline = time.monotonic() + grace
        threads = [
            threading.Thread(target=app.stop, args=(max(0.0, deadline - time.monotonic()),))
            for app in running
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _app(self, name: str) -> App:
        try:
            return self._apps[name]
        except KeyError:
            raise UnknownApp(name) from None

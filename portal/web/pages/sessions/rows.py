"""View models of sessions: labels, icons and figures for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portal.core.apps.access import AppState
from portal.core.apps.catalog import AppSpec, Image
from portal.core.auth.person import Person
from portal.core.cluster.usage import SlurmStatus
from portal.core.session.session import HELD, LIVE, SUSPENDED, Session, State
from portal.web.api.models.apps import AppOut
from portal.web.api.models.sessions import SessionOut, SessionState
from portal.web.api.session_responses import session_responses
from portal.web.context import services

TERMINAL = "terminal"


@dataclass(frozen=True)
class Chip:
    """A state as a word, an icon and a colour, for accessibility."""

    word: str
    icon: str
    tone: str


CHIPS: dict[str, Chip] = {
    SessionState.PENDING: Chip("Pending", "hourglass-split", "wait"),
    SessionState.STARTING: Chip("Starting", "arrow-repeat", "start"),
    SessionState.RUNNING: Chip("Running", "play-fill", "live"),
    SessionState.ENDING: Chip("Ending", "stop-fill", "quiet"),
    SessionState.FINISHED: Chip("Finished", "check-lg", "quiet"),
    SessionState.FAILED: Chip("Failed", "exclamation-triangle-fill", "bad"),
    SessionState.UNKNOWN: Chip("Unknown", "question-lg", "wait"),
}
# Reasons that are more specific than the state.
REASON_CHIPS = dict.fromkeys(HELD, Chip("Held", "pause-fill", "wait")) | {
    SUSPENDED: Chip("Paused", "pause-fill", "wait")
}


@dataclass(frozen=True)
class SessionView:
    """One session on the Sessions page."""

    session: Session
    data: SessionOut
    """The API's response model, so that pages and API agree."""
    image: Image | None
    offered: list[AppSpec]
    is_own: bool

    @property
    def chip(self) -> Chip:
        """The chip of its state."""
        code = self.data.reason.code if self.data.reason else ""
        return REASON_CHIPS.get(code) or CHIPS[self.data.state]

    @property
    def end_text(self) -> str:
        """The text about its end, with "you" for the reader."""
        text = self.session.end_text or ""
        mine = f"Ended by {self.session.stopped_by}."
        own_doing = self.is_own and self.session.stopped_by == self.session.owner
        return (
            f"Ended by you.{text.removeprefix(mine)}"
            if own_doing and text.startswith(mine)
            else text
        )

    @property
    def live(self) -> bool:
        """Whether it can still be ended."""
        return self.session.state in LIVE and self.session.state is not State.ENDING

    @property
    def apps(self) -> list[AppSpec]:
        """The apps that the reader may open: only in their own live sessions."""
        return self.offered if self.is_own and self.live else []

    @property
    def first_app(self) -> AppSpec | None:
        """The app with the large button: the image's default app, else the first."""
        default = self.image.default_app if self.image else None
        pages = [app for app in self.apps if app.kind == "web"]
        preferred = [app for app in pages if app.name == default]
        return next(iter(preferred or pages), None)

    @property
    def terminal(self) -> AppSpec | None:
        """The terminal, which has its own button."""
        return next((app for app in self.apps if app.name == TERMINAL), None)

    @property
    def failed_apps(self) -> list[AppOut]:
        """The apps that failed; those that share a server count once."""
        sharing = {app.name for app in self.offered if app.shares}
        apps = self.data.apps if self.live else []
        return [
            app
            for app in apps
            if app.message and app.state is AppState.FAILED and app.name not in sharing
        ]

    @property
    def titled_apps(self) -> list[AppOut]:
        """The running apps to which the user has given a title."""
        titles = {app.name: app.title for app in self.apps}
        return [
            app
            for app in self.data.apps
            if app.state is AppState.READY and titles.get(app.name, app.title) != app.title
        ]

    @property
    def public_apps(self) -> list[AppOut]:
        """The public apps."""
        return [app for app in self.data.apps if app.public and self.live]

    @property
    def cpu_share(self) -> float | None:
        """Use of the granted cores, in percent."""
        percent = self.session.cpu_percent
        return None if percent is None else min(percent / self.session.cpus, 100.0)

    @property
    def memory_share(self) -> float | None:
        """Use of the granted memory, in percent."""
        used = self.session.memory_used
        return None if used is None else min(used / 2**20 / self.session.memory_mb * 100, 100.0)

    @property
    def gpu_title(self) -> str:
        """The type of its GPU if the site has several types, else ""."""
        gpus = services().gpus
        several = self.session.fgpu and len(gpus.kinds) > 1
        return gpus.title(self.session.gpu_kind) if several else ""

    @property
    def gpu_share(self) -> float | None:
        """Use of its share of the GPU's multiprocessors, in percent."""
        percent, share = self.session.gpu_percent, self.session.gpu_sm_percent
        return None if percent is None or not share else min(percent / share * 100, 100.0)

    @property
    def gpu_memory_share(self) -> float | None:
        """Use of its slice of the GPU's memory, in percent."""
        used, memory_mb = self.session.gpu_memory_used, self.session.gpu_memory_mb
        return None if used is None or not memory_mb else min(used / 2**20 / memory_mb * 100, 100.0)


def session_views(
    person: Person, sessions: Sequence[Session], status: SlurmStatus | None = None
) -> list[SessionView]:
    """The view models of sessions."""
    catalog = services().catalog()
    return [
        SessionView(
            session,
            data,
            catalog.image(session.environment, session.version),
            services().apps.offered(session),
            session.owner == person.name,
        )
        for session, data in zip(sessions, session_responses(sessions, status), strict=True)
    ]

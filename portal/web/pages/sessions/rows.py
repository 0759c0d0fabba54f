"""How sessions look on pages: words, icons and figures, for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from portal.core.apps.catalog import AppSpec, Image
from portal.core.auth.person import Person
from portal.core.cluster.usage import SlurmStatus
from portal.core.session.session import HELD, LIVE, SUSPENDED, Session, State
from portal.web.api.serialize import all_in_full
from portal.web.context import services

TERMINAL = "terminal"


@dataclass(frozen=True)
class Chip:
    """A state in a word, an icon and a colour, since not everybody sees all three."""

    word: str
    icon: str
    tone: str


CHIPS = {
    "PENDING": Chip("Pending", "hourglass-split", "wait"),
    "STARTING": Chip("Starting", "arrow-repeat", "start"),
    "RUNNING": Chip("Running", "play-fill", "live"),
    "ENDING": Chip("Ending", "stop-fill", "quiet"),
    "FINISHED": Chip("Finished", "check-lg", "quiet"),
    "FAILED": Chip("Failed", "exclamation-triangle-fill", "bad"),
    "UNKNOWN": Chip("Unknown", "question-lg", "wait"),
}
# What a reason says more exactly than the state.
REASON_CHIPS = dict.fromkeys(HELD, Chip("Held", "pause-fill", "wait")) | {
    SUSPENDED: Chip("Paused", "pause-fill", "wait")
}


@dataclass(frozen=True)
class SessionView:
    """One session on the sessions page."""

    session: Session
    data: dict[str, Any]
    """The session in the words of the REST API: pages and programs never disagree."""
    image: Image | None
    offered: list[AppSpec]
    own: bool

    @property
    def chip(self) -> Chip:
        """The state's looks."""
        code = (self.data["reason"] or {}).get("code", "")
        return REASON_CHIPS.get(code) or CHIPS[self.data["state"]]

    @property
    def live(self) -> bool:
        """Whether it can still be ended."""
        return self.session.state in LIVE and self.session.state is not State.ENDING

    @property
    def apps(self) -> list[AppSpec]:
        """What the launcher offers to this person: one's own apps only."""
        return self.offered if self.own and self.live else []

    @property
    def first_app(self) -> AppSpec | None:
        """The app that most people of this image want."""
        wanted = self.image.default_app if self.image else None
        pages = [app for app in self.apps if app.kind == "web"]
        named = [app for app in pages if app.name == wanted]
        return next(iter(named or pages), None)

    @property
    def terminal(self) -> AppSpec | None:
        """The terminal, which has a button of its own."""
        return next((app for app in self.apps if app.name == TERMINAL), None)

    @property
    def troubles(self) -> list[dict[str, Any]]:
        """The apps that failed, in the words of the API; each server once."""
        sharing = {app.name for app in self.offered if app.shares}
        said = self.data["apps"] if self.live else []
        return [data for data in said if data["message"] and data["name"] not in sharing]

    @property
    def public_apps(self) -> list[dict[str, Any]]:
        """The apps that are open to everybody, in the words of the API."""
        return [data for data in self.data["apps"] if data["public"] and self.live]

    @property
    def cpu_share(self) -> float | None:
        """Percent of the granted cores in use."""
        percent = self.session.cpu_percent
        return None if percent is None else min(percent / self.session.cpus, 100.0)

    @property
    def memory_share(self) -> float | None:
        """Percent of the granted memory in use."""
        used = self.session.memory_used
        return None if used is None else min(used / 2**20 / self.session.memory_mb * 100, 100.0)

    @property
    def gpu_title(self) -> str:
        """Which GPU it has a share of, where that is not plain."""
        gpus = services().sessions.gpus
        several = self.session.fgpu and len(gpus.kinds) > 1
        return gpus.title(self.session.gpu_kind) if several else ""

    @property
    def gpu_share(self) -> float | None:
        """Percent of its share of the GPU's multiprocessors in use."""
        percent, share = self.session.gpu_percent, self.session.gpu_sm_percent
        return None if percent is None or not share else min(percent / share * 100, 100.0)

    @property
    def gpu_memory_share(self) -> float | None:
        """Percent of its slice of the GPU's memory in use."""
        used, memory_mb = self.session.gpu_memory_used, self.session.gpu_memory_mb
        return None if used is None or not memory_mb else min(used / 2**20 / memory_mb * 100, 100.0)


def session_views(
    person: Person, sessions: Sequence[Session], status: SlurmStatus | None = None
) -> list[SessionView]:
    """Dress sessions for the page."""
    catalog = services().sessions.catalog()
    return [
        SessionView(
            session,
            data,
            catalog.image(session.environment, session.version),
            services().apps.offered(session),
            session.owner == person.name,
        )
        for session, data in zip(sessions, all_in_full(sessions, status), strict=True)
    ]

"""The app launcher: a card for each app of a session, with its state and what may be chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from portal.core.apps.access import AppOptions, AppState, OpenApp
from portal.core.apps.catalog import AppSpec
from portal.core.auth.person import Person
from portal.core.session.end_reasons import app_trouble
from portal.core.session.session import LIVE, Session, State
from portal.errors import FieldError, InvalidRequest
from portal.services.apps.apps import Choices
from portal.web.api.models import app_address
from portal.web.context import services
from portal.web.pages.sessions.rows import Chip

_CHIPS = {
    AppState.WANTED: Chip("Waiting", "hourglass-split", "wait"),
    AppState.STARTING: Chip("Starting", "arrow-repeat", "start"),
    AppState.READY: Chip("Running", "play-fill", "live"),
    AppState.FAILED: Chip("Failed", "exclamation-triangle-fill", "bad"),
    AppState.STOPPED: Chip("Stopped", "stop-fill", "quiet"),
}


@dataclass(frozen=True)
class AppCard:
    """One app in the launcher."""

    spec: AppSpec
    opened: OpenApp | None
    server: OpenApp | None
    """The entry of the app whose process answers for this one."""
    let_in: bool
    """Whether some browser may use it at the moment."""
    choices: Choices
    address: str | None
    """Where it is found, once it was opened."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What was just entered, where something was wrong with it."""
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def chip(self) -> Chip | None:
        """The state's looks; None for an app that nobody has opened."""
        return _CHIPS[self.server.state] if self.server else None

    @property
    def trouble(self) -> str:
        """Why it failed."""
        failed = self.server is not None and self.server.state is AppState.FAILED
        return app_trouble(self.spec.title, self.server.message) if self.server and failed else ""

    @property
    def public(self) -> bool:
        """Whether everybody who knows the address may use it."""
        return self.opened is not None and self.opened.public_since is not None

    @property
    def asked(self) -> str:
        """What was answered to what the app asks for."""
        return self.values.get("asked", self.opened.asked if self.opened else "")

    @property
    def port(self) -> str:
        """The port to try first, as it stands in its field."""
        return self.values.get("preferred_port", "")


@dataclass(frozen=True)
class AppLauncher:
    """The launcher of one session."""

    session: Session
    cards: list[AppCard]

    @property
    def live(self) -> bool:
        """Whether apps can still be opened."""
        return self.session.state in LIVE and self.session.state is not State.ENDING

    @property
    def runs(self) -> bool:
        """Whether apps open at once."""
        return self.session.state is State.RUNNING


def app_launcher(
    person: Person,
    session_id: str,
    wrong: str = "",
    values: Mapping[str, str] | None = None,
    error: InvalidRequest | None = None,
) -> AppLauncher:
    """The launcher of one's own session; `wrong` names the app whose form was refused."""
    access, origins = services().apps, services().settings.web.origins
    session = access.get_own(person, session_id)
    opened = {app.app: app for app in access.opened(session.id)}
    inside = access.in_use(session.id)
    problems = {problem.field: problem.message for problem in error.errors} if error else {}
    cards = [
        AppCard(
            spec,
            opened.get(spec.name),
            opened.get(spec.server),
            spec.name in inside,
            access.choices(spec),
            app_address(spec, opened.get(spec.name), origins),
            values or {} if spec.name == wrong else {},
            problems if spec.name == wrong else {},
        )
        for spec in access.offered(session)
    ]
    return AppLauncher(session, cards)


def to_options(form: Mapping[str, str]) -> AppOptions:
    """How a form wants an app opened; raises InvalidRequest for a port that is no number."""
    port = form.get("preferred_port", "").strip()
    # More digits than a port has are no port, and Python would read them for a while.
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise InvalidRequest([FieldError("preferred_port", "write the number of a port")])
    return AppOptions(
        public=True if "public" in form else None,
        port=int(port) if port else None,
        asked=form["asked"].strip() if "asked" in form else None,
    )

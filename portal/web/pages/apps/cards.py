"""The app launcher: a card for each app of a session, with its state and its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from portal.core.apps.access import AppOptions, AppState, OpenApp
from portal.core.apps.catalog import AppSpec
from portal.core.auth.person import Person
from portal.core.session.session import LIVE, Session, State
from portal.errors import FieldError, InvalidRequest
from portal.services.apps.apps import Choices
from portal.web.api.models.apps import AppOut
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
    data: AppOut
    """The API's response model."""
    let_in: bool
    """Whether a browser currently has access."""
    choices: Choices
    values: Mapping[str, str] = field(default_factory=dict)
    """The values that were entered, if they were rejected."""
    errors: Mapping[str, str] = field(default_factory=dict)
    opened: OpenApp | None = None
    """None until it has been opened."""
    sharing: tuple[str, ...] = ()
    """The titles of other apps of the same process."""
    change: bool = False
    """Whether the page is for changing its fields."""

    @property
    def chip(self) -> Chip | None:
        """The chip of its state; None for an app that has not been opened."""
        return _CHIPS[self.data.state] if self.data.state else None

    @property
    def answer(self) -> str:
        """The value of the field for the answer to the app's prompt."""
        return self.values.get("asked", self.opened.asked if self.opened else "")

    @property
    def own_title(self) -> str:
        """The value of the field for its title."""
        return self.values.get("title", self.opened.title if self.opened else "")

    @property
    def needs_answer(self) -> bool:
        """Whether it cannot be opened before its prompt is answered."""
        return self.spec.must_answer and not (self.opened and self.opened.asked)

    @property
    def runs(self) -> bool:
        """Whether there is a process to stop, or one will start."""
        return self.data.state in (AppState.WANTED, AppState.STARTING, AppState.READY)

    @property
    def failed(self) -> bool:
        """Whether it failed to start, or exited."""
        return self.data.state is AppState.FAILED

    @property
    def port(self) -> str:
        """The value of the field for the preferred port."""
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
        """Whether apps open immediately."""
        return self.session.state is State.RUNNING


def app_launcher(
    person: Person,
    session_id: str,
    rejected: str = "",
    values: Mapping[str, str] | None = None,
    error: InvalidRequest | None = None,
    change: str = "",
) -> AppLauncher:
    """The launcher of the user's own session.

    `rejected`: the app whose form was rejected; `change`: the app whose fields are expanded.
    """
    access, origins = services().apps, services().settings.web.origins
    session = access.get_own(person, session_id)
    opened = {app.app: app for app in access.opened(session.id)}
    inside = access.in_use(session.id)
    problems = {problem.field: problem.message for problem in error.errors} if error else {}
    offered = access.offered(session)
    cards = [
        AppCard(
            spec,
            AppOut.of(spec, opened.get(spec.name), opened.get(spec.server), origins),
            spec.name in inside,
            access.choices(spec),
            values or {} if spec.name == rejected else {},
            problems if spec.name == rejected else {},
            opened.get(spec.name),
            tuple(o.title for o in offered if o.server == spec.server and o is not spec),
            spec.name == change,
        )
        for spec in offered
    ]
    return AppLauncher(session, cards)


def to_options(form: Mapping[str, str]) -> AppOptions:
    """The options in a form; raises InvalidRequest for a port that is not a number."""
    port = form.get("preferred_port", "").strip()
    # No port has more than five digits, and parsing a very long number is slow.
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise InvalidRequest([FieldError("preferred_port", "write the number of a port")])
    return AppOptions(
        public=True if "public" in form else None,
        port=int(port) if port else None,
        asked=form["asked"].strip() if "asked" in form else None,
        title=form["title"].strip() if "title" in form else None,
    )

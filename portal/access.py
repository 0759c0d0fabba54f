"""The way from a click to an app: ticket, cookie, route; and the way back when it is taken away."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from portal.core.access import (
    AppState,
    AppWish,
    Grant,
    OpenApp,
    Person,
    Ticket,
    hash_secret,
    public_key,
)
from portal.core.administration import SiteRules
from portal.core.app import AppSpec, Catalog
from portal.core.origins import Origins, Range, choose_port, port_of
from portal.core.ports import Clock, Note
from portal.core.session import LIVE, OVER, Session, State
from portal.core.stores import AccessStore, SessionStore
from portal.errors import Conflict, FieldError, InvalidRequest, NotFound, Unauthorized
from portal.starts import Starts
from portal.ways import Ways

TICKET_LIFE = timedelta(seconds=60)
NO_WISH = AppWish()
MAX_ANSWER = 500
"""Characters that an owner may write where an app asks for something."""
_TRIES = 5
"""How often two who want the same port at the same moment may meet."""


@dataclass(frozen=True)
class AppLink:
    """Where to send a browser so that it enters an app; good once, for a minute."""

    label: str
    path: str
    """Where at its origin the app begins."""
    ticket: str
    state: AppState
    public: bool
    told: str = ""
    """What the owner should know, such as that a port was not free."""


@dataclass(frozen=True)
class Choices:
    """What the owner of an app may choose when opening it."""

    public: bool
    ports: Range | None
    """The pool from which a port may be asked for; None where none may."""


@dataclass(frozen=True)
class Gate:
    """What stands between a browser and its app."""

    session: Session
    app: AppSpec
    state: AppState
    message: str
    log: str
    inside: bool
    """Whether the browser has a cookie of its own; else the app is open to everybody."""


class Access:
    """Opens apps, lets browsers in, and shuts the way again."""

    def __init__(
        self,
        *,
        sessions: SessionStore,
        store: AccessStore,
        ways: Ways,
        starts: Starts,
        catalog: Callable[[], Catalog],
        origins: Origins,
        rules: Callable[[], SiteRules],
        clock: Clock,
        note: Note,
    ) -> None:
        self._sessions = sessions
        self._store = store
        self._catalog = catalog
        self._origins = origins
        self._rules = rules
        self._clock = clock
        self._note = note
        self.ways = ways
        self.starts = starts

    # Opening

    def open_app(
        self, person: Person, session_id: str, app: str, wish: AppWish = NO_WISH
    ) -> AppLink:
        """Start an app if need be and give one browser a ticket to it.

        A session that still waits is fine: the app starts with it. Only the owner may enter,
        administrators included: seeing a session is not reading its notebooks. Raises NotFound
        for what is not there or not theirs, Conflict when the session is over or all ports are
        taken, InvalidRequest for a wish that cannot be granted.
        """
        session = self.own(person, session_id)
        spec = self._spec(session, app)
        if session.state in OVER or session.state is State.ENDING:
            raise Conflict("This session is over. Launch it again to use its apps.")
        self._check(spec, wish)
        opened = self._want(session, spec, wish)
        if wish.asked is not None and wish.asked != opened.asked:
            self._stop(session, spec)
            self._store.ask_app(session.id, spec.name, wish.asked)
        if wish.public is not None:
            self._publish(session, spec, opened, wish.public)
        self._store.shut_app(session.id, spec.name, False)
        state = self._start(session, spec)
        if spec.kind == "ssh" and state is AppState.READY:
            self.ways.open_standing(session, replace(opened, shut=False))
        self._sessions.change(session.id, LIVE, last_used=self._clock())
        self._note(person.name, "app.open", session.id, f"{spec.title} of {session.name}")
        public = opened.public_since is not None if wish.public is None else wish.public
        moved = wish.port is not None and opened.label != str(wish.port)
        told = f"Port {wish.port} is taken; it is on port {opened.label}." if moved else ""
        ticket = self._ticket(person, opened.label)
        return AppLink(opened.label, spec.path, ticket, state, public, told)

    def choices(self, spec: AppSpec) -> Choices:
        """What the administrators and the app itself leave to its owner."""
        rules = self._rules()
        pool = self._origins.pool(spec.kind) if rules.preferred_ports else None
        return Choices(public=spec.public and rules.public_apps, ports=pool)

    def _check(self, spec: AppSpec, wish: AppWish) -> None:
        choices, problems = self.choices(spec), []
        if wish.public and not choices.public:
            problems.append(FieldError("public", f"{spec.title} cannot be opened to everybody"))
        if wish.port is not None:
            pool = choices.ports
            if pool is None:
                problems.append(FieldError("preferred_port", "ports cannot be chosen here"))
            elif not pool[0] <= wish.port <= pool[1]:
                text = f"choose a port from {pool[0]} to {pool[1]}"
                problems.append(FieldError("preferred_port", text))
            elif not self._origins.fits(str(wish.port), spec.kind):
                text = f"browsers do not open port {wish.port}; choose another one"
                problems.append(FieldError("preferred_port", text))
        if wish.asked and not spec.asks:
            problems.append(FieldError("asked", f"{spec.title} asks for nothing"))
        elif wish.asked and (len(wish.asked) > MAX_ANSWER or not wish.asked.isprintable()):
            text = f"write one line of at most {MAX_ANSWER} characters"
            problems.append(FieldError("asked", text))
        if problems:
            raise InvalidRequest(problems)

    def _want(self, session: Session, spec: AppSpec, wish: AppWish = NO_WISH) -> OpenApp:
        """The app's entry, with an origin that this site serves, the wished-for one if free."""
        known = next((a for a in self._store.apps(session.id) if a.app == spec.name), None)
        if known is not None and self._stays(known, spec, wish):
            return known
        for _ in range(_TRIES):
            label = self._label(session, spec, wish)
            if known is None:
                opened = self._store.want_app(session.id, spec.name, label)
                if opened is not None:
                    self._remember(opened, session)
                    return opened
            elif self._store.label_app(session.id, spec.name, label):
                return self._moved(session, known)
        raise Conflict("All ports for apps are taken. Try again in a moment.")

    def _stays(self, known: OpenApp, spec: AppSpec, wish: AppWish) -> bool:
        if not self._origins.fits(known.label, spec.kind):
            return False
        other = wish.port is not None and str(wish.port) != known.label
        return not other or str(wish.port) in self._store.labels()

    def _label(self, session: Session, spec: AppSpec, wish: AppWish) -> str:
        if self._origins.pool(spec.kind) is None:
            return secrets.token_hex(10)
        taken = {port for label in self._store.labels() if (port := port_of(label)) is not None}
        uses = self._store.port_uses()
        ports = self._origins.usable(spec.kind)
        port = choose_port(ports, taken, uses, session.owner, wish.port, random.choice)
        if port is None:
            raise Conflict("All ports for apps are taken. End a session that you do not need.")
        return str(port)

    def _moved(self, session: Session, known: OpenApp) -> OpenApp:
        """The app has a new label: nobody comes in by the old one any more."""
        self._drop([g for g in self._store.grants(session=session.id) if g.app == known.app])
        self.ways.shut(*self.ways.keys_without_cookie(known))
        opened = next(a for a in self._store.apps(session.id) if a.app == known.app)
        self._remember(opened, session)
        if self._server(session, opened.app).state is AppState.READY:
            self.ways.open_standing(session, opened)
        return opened

    def _remember(self, opened: OpenApp, session: Session) -> None:
        port = port_of(opened.label)
        if port is not None:
            self._store.note_port(port, session.owner, self._clock())

    def _publish(self, session: Session, spec: AppSpec, opened: OpenApp, public: bool) -> None:
        if public == (opened.public_since is not None):
            return
        self._store.publish_app(session.id, spec.name, self._clock() if public else None)
        if not public:
            self.ways.shut(public_key(opened.label))
        elif self._server(session, spec.name).state is AppState.READY:
            self.ways.open(public_key(opened.label), session, spec.name)
        action = "app.publish" if public else "app.unpublish"
        self._note(session.owner, action, session.id, f"{spec.title} of {session.name}")

    def _ticket(self, person: Person, label: str) -> str:
        secret = secrets.token_urlsafe(32)
        self._store.add_ticket(
            Ticket(
                hash=hash_secret(secret),
                label=label,
                user=person.name,
                login=person.login,
                expires=self._clock() + TICKET_LIFE,
            )
        )
        return secret

    def _spec(self, session: Session, app: str) -> AppSpec:
        spec = next((spec for spec in self.offered(session) if spec.name == app), None)
        if spec is None:
            raise NotFound(f"This session has no app named {app}.")
        return spec

    def offered(self, session: Session) -> list[AppSpec]:
        """The apps of a session."""
        return self._catalog().apps_of(session.environment, session.version, session.apps)

    def _start(self, session: Session, spec: AppSpec) -> AppState:
        server = self._catalog().apps[spec.server]
        return self.starts.start(session, server, self._want(session, server))

    def _stop(self, session: Session, spec: AppSpec) -> None:
        """Stop an app whose process knows only an earlier answer."""
        server = self._server(session, spec.name)
        if server.state in (AppState.STARTING, AppState.READY):
            self.starts.stop(session, server.app)
            self.ways.server_changed(session, server.app, AppState.STOPPED)

    def _server(self, session: Session, app: str) -> OpenApp:
        """The entry of the app whose process answers for this one."""
        server = self.ways.server_of(app)
        missing = OpenApp(session.id, server, "", AppState.WANTED)
        return next((a for a in self._store.apps(session.id) if a.app == server), missing)

    # What runners say

    def note_image(self, session: Session, found: Sequence[str]) -> tuple[str, ...]:
        """Remember which of the site's apps a session has found in its image, and return them."""
        catalog, image = self._catalog(), (session.environment, session.version)
        known = tuple(name for name in dict.fromkeys(found) if name in catalog.apps)
        if known and known != catalog.found.get(image):
            self._store.note_image_apps(*image, known)
        return known

    def note_app(
        self,
        session: Session,
        app: str,
        state: AppState,
        message: str = "",
        tail: str = "",
        details: str | None = None,
    ) -> None:
        """Take in what the runner says of an app, and open or shut its routes accordingly."""
        known = {opened.app: opened for opened in self._store.apps(session.id)}
        if app not in known:
            return
        # A heartbeat may tell of a failure before the report that says why.
        new = message or details
        if known[app].state == state and (known[app].message or not new):
            return
        self._store.set_app(session.id, app, state, message, tail, details)
        self.ways.server_changed(session, app, state)

    # Entering

    def enter(self, label: str, ticket: str) -> tuple[str, str]:
        """Exchange a ticket for (cookie value, path to go to) at the app's own origin.

        Raises Unauthorized for a ticket that is spent, expired or for another origin.
        """
        now = self._clock()
        taken = self._store.take_ticket(hash_secret(ticket), label, now)
        opened = self._store.app_by_label(label) if taken else None
        session = self._sessions.get(opened.session) if opened else None
        if taken is None or opened is None or session is None or session.state not in LIVE:
            raise Unauthorized("This link has been used already. Open the app again.")
        cookie = secrets.token_urlsafe(32)
        grant = Grant(
            cookie_hash=hash_secret(cookie),
            label=label,
            session=session.id,
            app=opened.app,
            user=taken.user,
            login=taken.login,
            created=now,
        )
        self._store.add_grant(grant)
        spec = self._spec(session, opened.app)
        if self._server(session, opened.app).state is AppState.READY:
            self._let_in(session, opened, grant)
        return cookie, spec.path

    def _let_in(self, session: Session, opened: OpenApp, grant: Grant | None) -> None:
        """Open the way of a grant, or of everybody, unless it was taken back meanwhile."""
        key = grant.key if grant else public_key(opened.label)
        self.ways.open(key, session, opened.app)
        if grant:
            stands = self._store.grant(grant.label, grant.cookie_hash) is not None
        else:
            now = self._store.app_by_label(opened.label)
            stands = now is not None and now.public_since is not None
        if not stands:
            self.ways.shut(key)

    def gate(self, label: str, cookie: str) -> Gate:
        """What a browser that was not let through should be told.

        It also mends a way that HAProxy has lost. Raises NotFound without a good cookie, unless
        the app is open to everybody.
        """
        opened = self._store.app_by_label(label)
        grant = self._store.grant(label, hash_secret(cookie)) if cookie else None
        session = self._sessions.get(opened.session) if opened else None
        if opened is None or session is None or not (grant or opened.public_since):
            raise NotFound("There is nothing here.")
        spec = self._spec(session, opened.app)
        server = self._server(session, opened.app)
        if server.state is AppState.READY and session.state is State.RUNNING:
            self._let_in(session, opened, grant)
        # Strangers learn that it is not there yet, not what its log says.
        said = (server.message, server.log) if grant else ("", "")
        return Gate(session, spec, server.state, *said, inside=grant is not None)

    def owner_link(self, person: Person, label: str) -> AppLink:
        """A new ticket for somebody who came to an app's address without a cookie."""
        opened = self._store.app_by_label(label)
        if opened is None:
            raise NotFound("There is nothing here.")
        return self.open_app(person, opened.session, opened.app)

    def opened(self, session_id: str) -> list[OpenApp]:
        """The apps of a session that somebody has opened."""
        return self._store.apps(session_id)

    def opened_in(self, sessions: Collection[str]) -> list[OpenApp]:
        """The same for many sessions at once."""
        return self._store.apps_of(sessions)

    def own(self, person: Person, session_id: str) -> Session:
        """One's own session; raises NotFound for others, to administrators as well."""
        session = self._sessions.get(session_id)
        if session is None or session.owner != person.name:
            raise NotFound("There is no such session.")
        return session

    def let_in(self, session_id: str) -> set[str]:
        """The apps of a session that some browser may use at the moment."""
        return {grant.app for grant in self._store.grants(session=session_id)}

    # Closing

    def make_private(self, person: Person, session_id: str, app: str) -> None:
        """Open an app to its owner alone again, and cut everybody else off; again is fine."""
        session = self.own(person, session_id)
        spec = self._spec(session, app)
        for opened in self._store.apps(session.id):
            if opened.app == spec.name:
                self._publish(session, spec, opened, public=False)

    def close_app(self, person: Person, session_id: str, app: str) -> None:
        """Shut every way into one app of one's own session; the app itself goes on."""
        session = self.own(person, session_id)
        spec = self._spec(session, app)
        self._drop([g for g in self._store.grants(session=session.id) if g.app == spec.name])
        for opened in self._store.apps(session.id):
            if opened.app == spec.name:
                self._publish(session, spec, opened, public=False)
                keys = self.ways.keys_without_cookie(opened)
                self._store.shut_app(session.id, spec.name, True)
                self.ways.shut(*keys)
        self._note(person.name, "app.close", session.id, f"{spec.title} of {session.name}")

    def close_session(self, session_id: str) -> None:
        """Shut every way into a session and forget its tickets."""
        grants = self._store.grants(session=session_id)
        keys = [k for app in self.opened(session_id) for k in self.ways.keys_without_cookie(app)]
        self._store.close_session(session_id)
        self.ways.shut(*(grant.key for grant in grants), *keys)

    def close_login(self, login: str) -> None:
        """Shut every way that was opened from one login."""
        self._drop(self._store.grants(login=login))

    def _drop(self, grants: Sequence[Grant]) -> None:
        self._store.drop_grants(grants)
        # After the store: HAProxy's map is restored from it, never the other way round.
        self.ways.shut_grants(grants)

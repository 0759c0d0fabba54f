"""Access to apps: origins, tickets, grants and the routes derived from them.

Opening an app issues a one-time ticket; at the app's own origin it is exchanged for a cookie. The
cookie's hash and the origin's label together are a key of HAProxy's map, so that authorisation and
routing are one look-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from portal.core.session.session import Session


class AppState(StrEnum):
    """State of an app's process; WANTED: to be started, its runner has no request yet."""

    WANTED = "wanted"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class OpenApp:
    """One app of one session that has been opened at least once."""

    session: str
    app: str
    label: str
    """Label of the app's origin (core/apps/origins.py)."""
    state: AppState
    message: str = ""
    log: str = ""
    public_since: datetime | None = None
    """Since when the app has been public (no cookie needed); None for a private app."""
    asked: str = ""
    """The owner's answer to the app's prompt (AppSpec.asks)."""
    title: str = ""
    """The title that its owner gave it; "": the app's own."""
    details: str = ""
    """Details that the app reports for its owner, such as its SSH host key."""
    closed: bool = False
    """Whether its owner has closed it; it has no SSH route until it is opened again."""
    moved: datetime | None = None
    """When its owner last requested a port."""
    still_open: bool = False
    """Whether HAProxy still has a revoked route to it."""


@dataclass(frozen=True)
class SessionApps:
    """A session and its apps by name, as read in one transaction."""

    session: Session
    apps: Mapping[str, OpenApp]

    def server(self, name: str) -> OpenApp:
        """The app of this name, whose process may serve other apps; WANTED if never opened."""
        return self.apps.get(name) or OpenApp(self.session.id, name, "", AppState.WANTED)


@dataclass(frozen=True)
class AppOptions:
    """How to open an app; None leaves a property unchanged."""

    public: bool | None = None
    port: int | None = None
    """The preferred port of the pool."""
    asked: str | None = None
    """The answer to the app's prompt (AppSpec.asks)."""
    title: str | None = None
    """The title that its owner gives it; "": the app's own."""


@dataclass(frozen=True)
class AppLink:
    """A redirect that opens an app in a browser: valid once, for a minute."""

    label: str
    path: str
    """The path of the app's start page."""
    ticket: str
    state: AppState
    public: bool
    notice: str = ""
    """A message for the owner, for example that the preferred port was not free."""


@dataclass(frozen=True)
class Ticket:
    """Permission to enter one app once, within a minute."""

    hash: str
    label: str
    session: str
    app: str
    user: str
    login: str
    """The login (or token) it was issued to; revoking that revokes the ticket."""
    expires: datetime


@dataclass(frozen=True)
class Grant:
    """A browser's standing permission to use one app at one origin."""

    cookie_hash: str
    label: str
    session: str
    app: str
    user: str
    login: str
    created: datetime

    @property
    def key(self) -> str:
        """The key of HAProxy's map."""
        return f"{self.label}.{self.cookie_hash}"


def public_key(label: str) -> str:
    """The key of HAProxy's map for a public app, which needs no cookie."""
    return f"{label}.public"


def ssh_key(label: str) -> str:
    """The key of HAProxy's map for an SSH port; sshd authenticates the clients."""
    return f"{label}.ssh"


def hub_key(label: str) -> str:
    """The key of HAProxy's map for a JupyterHub server, which authenticates its users."""
    return f"{label}.hub"


def gateway_name(app: str, session: str) -> str:
    """The TLS name under which a session's gateway forwards to one app's socket."""
    return f"{app}.{session}.slipway"


def route_target(session: Session, server: str) -> str | None:
    """The value of HAProxy's map for an app: address@port@name; None without a gateway."""
    if session.address is None or session.port is None:
        return None
    return f"{session.address}@{session.port}@{gateway_name(server, session.id)}"


@dataclass(frozen=True)
class RoutedApp:
    """An app of a running session with a gateway, and who has access to it."""

    opened: OpenApp
    address: str
    port: int
    """Those of the session's gateway."""
    cookie_hashes: tuple[str, ...]
    """Of the grants."""

    @property
    def keys(self) -> list[str]:
        """The grants' keys of HAProxy's map."""
        return [f"{self.opened.label}.{hash}" for hash in self.cookie_hashes]

    def target(self, server: str) -> str:
        """The value of HAProxy's map; see route_target."""
        return f"{self.address}@{self.port}@{gateway_name(server, self.opened.session)}"


@dataclass(frozen=True)
class OriginEntry:
    """The app at an origin, and the grant of a browser's cookies, read in one transaction."""

    session_apps: SessionApps
    opened: OpenApp
    """The app that currently has this origin."""
    grant: Grant | None
    """The grant of the first valid cookie: for this app of this session, and for its owner."""


@dataclass(frozen=True)
class RedeemedTicket:
    """The result of redeeming a ticket, with the session and its apps at that time."""

    session_apps: SessionApps
    opened: OpenApp
    grant: Grant
    mark: str
    """The origin's mark (core.apps.origins.Origin): decides whether the browser clears its data."""
    new: bool
    """False if the browser keeps its existing cookie."""
    dropped: tuple[str, ...] = ()
    """Keys of the oldest grants, revoked because the app had too many."""

"""Who may reach which app: origins, tickets, grants and the routes that follow from them.

A click gives a one-time ticket; at the app's own origin the ticket is exchanged for a cookie.
The cookie's hash, together with the origin's label, is the key of HAProxy's map: authorisation
and routing are one look-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from portal.core.session.session import Session


class AppState(StrEnum):
    """How far an app has come."""

    WANTED = "wanted"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True)
class OpenApp:
    """One app of one session, opened at least once."""

    session: str
    app: str
    label: str
    """Names the app's origin (core/apps/origins.py)."""
    state: AppState
    message: str = ""
    log: str = ""
    public_since: datetime | None = None
    """Since when everybody who knows the address may use it; the owner has opened it."""
    asked: str = ""
    """The owner's answer to what the app asks for (AppSpec.asks)."""
    details: str = ""
    """What the app itself wants to be shown, such as its SSH host key."""
    shut: bool = False
    """Whether its owner has closed it: what needs no cookie stays shut until it is opened again."""
    moved: datetime | None = None
    """When its owner last asked for a port."""
    still_open: bool = False
    """Whether a way into it was taken away that HAProxy has not shut yet."""


@dataclass(frozen=True)
class AppOptions:
    """How somebody wants an app opened; None leaves things as they are."""

    public: bool | None = None
    port: int | None = None
    """The port of the pool to try first."""
    asked: str | None = None
    """The answer to what the app asks for (AppSpec.asks)."""


@dataclass(frozen=True)
class Ticket:
    """Permission to enter one app once, within seconds."""

    hash: str
    label: str
    session: str
    app: str
    user: str
    login: str
    """The login (or token) it came from: logging out takes it back."""
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
    """The key of HAProxy's map that lets everybody in."""
    return f"{label}.public"


def ssh_key(label: str) -> str:
    """The key of HAProxy's map for an SSH port: sshd itself asks who is there."""
    return f"{label}.ssh"


def gateway_name(app: str, session: str) -> str:
    """The TLS name under which a session's gateway hands on to one app's socket."""
    return f"{app}.{session}.slipway"


def route_target(session: Session, server: str) -> str | None:
    """What HAProxy's map says for an app of a session: address@port@name; None before ready."""
    if session.address is None or session.port is None:
        return None
    return f"{session.address}@{session.port}@{gateway_name(server, session.id)}"


@dataclass(frozen=True)
class OriginEntry:
    """An origin with a cookie, as the store knows both at one moment."""

    opened: OpenApp
    """The app that is there now."""
    grant: Grant | None
    """What the cookie is good for: this very app of this very session, for its owner."""


@dataclass(frozen=True)
class RedeemedTicket:
    """What a ticket was exchanged for."""

    grant: Grant
    opened: OpenApp
    mark: str
    """The origin's mark: a browser that has not seen it holds what was there before."""
    new: bool
    """False where the browser keeps the cookie that it has."""
    dropped: tuple[str, ...] = ()
    """Keys of older browsers, which had to make room."""

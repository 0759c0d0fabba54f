"""Passwords are exchanged for a random secret; the store knows only its hash."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta

from portal.core.access import Person, hash_secret
from portal.core.stores import Login
from portal.errors import Unauthorized
from portal.web.context import services

BROWSER = "browser"
TOKEN = "token"  # noqa: S105
TOKEN_LIFE = timedelta(days=90)
SCOPES = ("read", "write")
MARK = "slipway_"
"""Every secret begins so: HAProxy keeps what it knows for ours away from apps."""

_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_MAX_PASSWORD = 1024
_NOTED = {BROWSER: "login", TOKEN: "token.make"}
_EXTEND_EVERY = timedelta(minutes=1)


def check_password(name: str, password: str) -> str:
    """Return the account's name.

    Raises Unauthorized, in the same words whatever was wrong, and Unavailable when the login
    node does not answer.
    """
    plausible = _NAME.fullmatch(name) and 0 < len(password) <= _MAX_PASSWORD
    if not plausible or "\0" in password or not services().authenticate(name, password):
        # What cannot be an account's name may be a password in the wrong field: not kept.
        tried = name if _NAME.fullmatch(name) else ""
        services().administration.note(tried, "login.refused")
        raise Unauthorized("The name or the password is wrong.")
    return name


def browser_life() -> timedelta:
    """How long a browser's login lasts without being used."""
    return timedelta(hours=services().settings.web.login_hours)


def issue(user: str, kind: str, scopes: tuple[str, ...], life: timedelta) -> tuple[str, Login]:
    """Make and store a new login; the secret is returned once and never kept."""
    secret = MARK + secrets.token_urlsafe(32)
    login = Login(hash_secret(secret), kind, user, scopes, services().clock() + life)
    services().logins.add_login(login)
    services().administration.note(user, _NOTED[kind], detail=" ".join(scopes))
    return secret, login


def find(secret: str, kind: str) -> Login | None:
    """The live login behind a secret."""
    login = services().logins.login(hash_secret(secret), services().clock())
    return login if login is not None and login.kind == kind else None


def person_of(login: Login) -> Person:
    """The person behind a login."""
    return Person(login.user, login.user in services().settings.slurm.admins, login.hash)


def keep_alive(login: Login) -> None:
    """Push the end of a browser's login back, but write to the store once a minute at most."""
    expires = services().clock() + browser_life()
    if expires - login.expires > _EXTEND_EVERY:
        services().logins.extend_login(login.hash, expires)


def end(person: Person) -> None:
    """Log out, and shut every app that was opened from this login."""
    services().logins.drop_login(person.login)
    services().access.close_login(person.login)
    services().administration.note(person.name, "logout")

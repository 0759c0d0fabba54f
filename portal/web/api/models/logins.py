"""Response models for API tokens and logins."""

from __future__ import annotations

from typing import Literal

from portal.core.auth.logins import PLAIN_SCOPES, SCOPES, Login, Purpose, Scope, UserLogins
from portal.web.api.models.base import ResponseModel, Time


class TokenOut(ResponseModel):
    """An API token, without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    created: Time
    last_used: Time
    """To the minute."""
    expires: Time
    address: str
    """The client address that it was created from."""
    purpose: Purpose | None
    """Its purpose if a program stores it; null for other tokens."""
    current: bool
    """Whether this request was sent with it."""

    @classmethod
    def of(cls, login: Login, *, current: bool, admin: bool) -> TokenOut:
        """Build it; `admin`: whether its owner is an administrator, which the scope needs."""
        valid = SCOPES if admin else PLAIN_SCOPES
        return cls.model_validate(
            {
                "id": login.id,
                "name": login.name,
                "scopes": [scope for scope in valid if scope in login.scopes],
                "created": login.created,
                "last_used": login.used,
                "expires": login.expires,
                "address": login.address,
                "purpose": login.purpose or None,
                "current": current,
            }
        )


class TokenListOut(ResponseModel):
    """The caller's tokens."""

    tokens: list[TokenOut]


class NewTokenOut(TokenOut):
    """A new API token with its secret."""

    token: str
    """The secret; returned only once."""


class LoginOut(TokenOut):
    """A browser's login, or an API token."""

    kind: Literal["browser", "token"]


class LoginListOut(ResponseModel):
    """A user's logins and tokens."""

    logins: list[LoginOut]


class PresenceOut(ResponseModel):
    """The number of a user's logins and tokens."""

    name: str
    browsers: int
    tokens: int
    last_used: Time

    @classmethod
    def of(cls, logins: UserLogins) -> PresenceOut:
        """Build it."""
        return cls(
            name=logins.user,
            browsers=logins.browsers,
            tokens=logins.tokens,
            last_used=logins.used,
        )


class PresenceListOut(ResponseModel):
    """A page of the users who have a login or a token."""

    people: list[PresenceOut]
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""

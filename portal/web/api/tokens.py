"""API tokens: created with the user's cluster password or with another token."""

from __future__ import annotations

from typing import Annotated

from flask import request
from pydantic import BaseModel, Field

from portal.core.auth.logins import MAX_NAME, TOKEN, Login, Purpose, Scope
from portal.core.auth.person import Person
from portal.errors import FieldError, InvalidRequest
from portal.web.api import open_to_all
from portal.web.api.models.base import REQUEST, NoContent
from portal.web.api.models.logins import NewTokenOut, TokenListOut, TokenOut
from portal.web.api.operation import Reply, operation
from portal.web.auth.bearer import require_token
from portal.web.auth.login_session import check_password
from portal.web.context import person, services, set_person
from portal.web.http.body import read_model

blueprint = open_to_all("tokens")

UNNAMED = "API token"


class TokenRequest(BaseModel):
    """A new token; user name and password are needed if the request carries no token."""

    model_config = REQUEST

    username: Annotated[str | None, Field(max_length=256)] = None
    password: Annotated[str | None, Field(max_length=1024, repr=False)] = None
    code: Annotated[str | None, Field(max_length=256, repr=False)] = None
    """The second factor of the login node, such as a verification code."""
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] = UNNAMED
    scopes: Annotated[list[Scope] | None, Field(min_length=1)] = None
    """By default, all scopes that its owner may have."""
    days: Annotated[int | None, Field(ge=1)] = None
    """Its lifetime in days; by default, the longest that the site allows."""
    purpose: Purpose | None = None
    """For a program that stores one token per user: it replaces the previous one of that name."""


@blueprint.before_request
def guard() -> None:
    """Require a token, except for creating one with a password."""
    if request.method != "POST" or "Authorization" in request.headers:
        require_token()


@blueprint.get("/tokens")
@operation("Your tokens", TokenListOut)
def list_tokens() -> TokenListOut:
    """The caller's tokens, without their secrets."""
    caller = person()
    logins = services().logins.logins_of(caller.name, TOKEN)
    return TokenListOut(tokens=[token_response(login, caller) for login in logins])


@blueprint.post("/tokens")
@operation(
    "Create a token, with a password or with another token",
    NewTokenOut,
    status=201,
    body=TokenRequest,
    security=[{}, {"token": []}],
)
def make_token() -> Reply[NewTokenOut]:
    """Create a token; only this response contains its secret."""
    body = read_model(TokenRequest)
    creator = _creator(body)
    secret, login = services().logins.make_token(
        creator, body.name, body.scopes, body.days, body.purpose
    )
    created = NewTokenOut(token=secret, **dict(token_response(login, creator)))
    return Reply(created, headers={"Cache-Control": "no-store"})


def _creator(body: TokenRequest) -> Person:
    """The caller: the owner of the token that was sent, or of the password in the body."""
    credentials = [
        name for name in ("username", "password", "code") if getattr(body, name) is not None
    ]
    if "Authorization" in request.headers:
        if credentials:
            raise InvalidRequest(
                [FieldError(credentials[0], "send a token or a password, not both")]
            )
        return person()
    if body.username is None or body.password is None:
        missing = "username" if body.username is None else "password"
        raise InvalidRequest([FieldError(missing, "this is missing")])
    user = check_password(body.username, body.password, body.code or "")
    set_person(services().logins.newcomer(user))
    return person()


@blueprint.delete("/tokens")
@operation("Revoke all of your tokens", NoContent)
def revoke_tokens() -> NoContent:
    """Revoke all of the caller's tokens, including the one that was sent."""
    services().logins.revoke_all(person().name, person().name, (TOKEN,))
    return NoContent()


@blueprint.delete("/tokens/<token_id>")
@operation("Revoke a token", NoContent)
def revoke_token(token_id: str) -> NoContent:
    """Revoke one of the caller's tokens."""
    services().logins.revoke_login(person().name, token_id, person().name, (TOKEN,))
    return NoContent()


def token_response(login: Login, caller: Person) -> TokenOut:
    """The response model of a token, for the caller."""
    admin = services().logins.may_administer(login.user)
    return TokenOut.of(login, current=login.hash == caller.login, admin=admin)

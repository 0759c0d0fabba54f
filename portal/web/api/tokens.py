"""Tokens for programs: made in exchange for the cluster's password or with another token."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from flask import request
from flask.typing import ResponseReturnValue
from pydantic import BaseModel, Field

from portal.core.auth.logins import MAX_NAME, PLAIN_SCOPES, SCOPES, TOKEN, Login
from portal.core.auth.person import Person
from portal.core.validation import STRICT
from portal.errors import FieldError, InvalidRequest
from portal.web.api import open_to_all
from portal.web.auth.bearer import require_token
from portal.web.auth.login_session import check_password
from portal.web.body import read_model
from portal.web.context import person, services, set_person

blueprint = open_to_all("tokens")

UNNAMED = "API token"


class TokenRequest(BaseModel):
    """A new token; user name and password where no token is sent with the request."""

    model_config = STRICT

    username: Annotated[str | None, Field(max_length=256)] = None
    password: Annotated[str | None, Field(max_length=1024, repr=False)] = None
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)] = UNNAMED
    scopes: Annotated[list[Literal["read", "write", "admin"]] | None, Field(min_length=1)] = None
    """What it may do; all that one may, when left out."""
    days: Annotated[int | None, Field(ge=1)] = None
    """How long it lasts; as long as the site lets tokens last, when left out."""


@blueprint.before_request
def guard() -> None:
    """Everything but the exchange of a password needs a token."""
    if request.method != "POST" or "Authorization" in request.headers:
        require_token()


@blueprint.get("/tokens")
def list_tokens() -> ResponseReturnValue:
    """One's own tokens, without their secrets."""
    who = person()
    found = services().logins.logins_of(who.name, TOKEN)
    return {"tokens": [shown(login, who) for login in found]}


@blueprint.post("/tokens")
def make_token() -> ResponseReturnValue:
    """Make a token; its secret is in this answer and nowhere else."""
    body = read_model(TokenRequest)
    who = _maker(body)
    secret, login = services().logins.make_token(who, body.name, body.scopes, body.days)
    answer = {"token": secret, **shown(login, who)}
    return answer, 201, {"Cache-Control": "no-store"}


def _maker(body: TokenRequest) -> Person:
    """Who asks: whose token was sent, or whose password is in the body."""
    sent = [name for name in ("username", "password") if getattr(body, name) is not None]
    if "Authorization" in request.headers:
        if sent:
            raise InvalidRequest([FieldError(sent[0], "send a token or a password, not both")])
        return person()
    if len(sent) < 2:
        missing = "password" if sent == ["username"] else "username"
        raise InvalidRequest([FieldError(missing, "this is missing")])
    user = check_password(body.username or "", body.password or "")
    set_person(Person(user, user in services().settings.slurm.admins, login=""))
    return person()


@blueprint.delete("/tokens")
def revoke_tokens() -> ResponseReturnValue:
    """Revoke all of one's tokens, the one that asks included."""
    services().logins.revoke_all(person().name, person().name, (TOKEN,))
    return "", 204


@blueprint.delete("/tokens/<token_id>")
def revoke_token(token_id: str) -> ResponseReturnValue:
    """Revoke one of one's tokens."""
    services().logins.revoke_login(person().name, token_id, person().name, (TOKEN,))
    return "", 204


def shown(login: Login, who: Person) -> dict[str, Any]:
    """A token as its owner sees it."""
    return {
        "id": login.id,
        "name": login.name,
        "scopes": [scope for scope in SCOPES if scope in login.scopes and _means(scope, login)],
        "created": login.created.isoformat(),
        "last_used": login.used.isoformat(),
        "expires": login.expires.isoformat(),
        "address": login.address,
        "current": login.hash == who.login,
    }


def _means(scope: str, login: Login) -> bool:
    return scope in PLAIN_SCOPES or login.user in services().settings.slurm.admins

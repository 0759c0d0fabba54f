"""Tokens for programs, in exchange for the cluster's password."""

from __future__ import annotations

from typing import Annotated, Literal

from flask.typing import ResponseReturnValue
from pydantic import BaseModel, Field

from portal.core.launch import STRICT
from portal.web.api import open_to_all
from portal.web.auth import logins
from portal.web.body import read_model
from portal.web.limits import login_limit

blueprint = open_to_all("tokens")


class TokenRequest(BaseModel):
    """Who wants a token, and what it may do."""

    model_config = STRICT

    username: Annotated[str, Field(max_length=256)]
    password: Annotated[str, Field(max_length=1024)]
    scopes: Annotated[list[Literal["read", "write"]], Field(min_length=1)] = ["read", "write"]


@blueprint.post("/tokens")
@login_limit
def make_token() -> ResponseReturnValue:
    """Check the password and answer with a token."""
    body = read_model(TokenRequest)
    user = logins.check_password(body.username, body.password)
    scopes = tuple(scope for scope in logins.SCOPES if scope in body.scopes)
    secret, login = logins.issue(user, logins.TOKEN, scopes, logins.TOKEN_LIFE)
    return {"token": secret, "scopes": scopes, "expires": login.expires.isoformat()}, 201

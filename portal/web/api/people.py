"""Who is logged in, for administrators: everybody's log-ins and tokens, and revoking them."""

from __future__ import annotations

from portal.core.auth.logins import Login
from portal.web.api import admin
from portal.web.api.models.base import NoContent
from portal.web.api.models.logins import LoginListOut, LoginOut, PresenceListOut, PresenceOut
from portal.web.api.operation import operation
from portal.web.api.tokens import token_answer
from portal.web.context import person, services

blueprint = admin.blueprint
"""The same guard stands before these routes."""


@blueprint.get("/admin/people")
@operation("Everybody who is logged in", PresenceListOut)
def people() -> PresenceListOut:
    """Everybody who has a log-in or a token."""
    found = services().logins.active_users()
    return PresenceListOut(people=[PresenceOut.of(logins) for logins in found])


@blueprint.get("/admin/people/<name>/logins")
@operation("Somebody's log-ins and tokens", LoginListOut)
def logins_of(name: str) -> LoginListOut:
    """Somebody's log-ins and tokens."""
    return LoginListOut(logins=[_login(login) for login in services().logins.logins_of(name)])


def _login(login: Login) -> LoginOut:
    return LoginOut.model_validate({"kind": login.kind} | dict(token_answer(login, person())))


@blueprint.delete("/admin/people/<name>/logins")
@operation("Log somebody out everywhere, tokens included", NoContent)
def log_out(name: str) -> NoContent:
    """Revoke all of them, and with them all browsers' access to this person's apps."""
    services().logins.revoke_all(name, person().name)
    return NoContent()


@blueprint.delete("/admin/people/<name>/logins/<login_id>")
@operation("Revoke one log-in or token", NoContent)
def log_out_one(name: str, login_id: str) -> NoContent:
    """Revoke one of them."""
    services().logins.revoke_login(name, login_id, person().name)
    return NoContent()

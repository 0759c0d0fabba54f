"""Logins and tokens of all users, and their revocation; for administrators."""

from __future__ import annotations

from portal.core.auth.logins import Login
from portal.web.api import admin
from portal.web.api.models.base import NoContent
from portal.web.api.models.logins import LoginListOut, LoginOut, PresenceListOut, PresenceOut
from portal.web.api.operation import operation
from portal.web.api.tokens import token_response
from portal.web.context import person, services

blueprint = admin.blueprint
"""Shared so that its guard protects these routes, too."""


@blueprint.get("/admin/people")
@operation("All users who are logged in", PresenceListOut)
def list_people() -> PresenceListOut:
    """All users who have a login or a token."""
    users = services().logins.active_users()
    return PresenceListOut(people=[PresenceOut.of(logins) for logins in users])


@blueprint.get("/admin/people/<name>/logins")
@operation("A user's logins and tokens", LoginListOut)
def list_logins_of_person(name: str) -> LoginListOut:
    """A user's logins and tokens."""
    return LoginListOut(logins=[_login(login) for login in services().logins.logins_of(name)])


def _login(login: Login) -> LoginOut:
    return LoginOut.model_validate({"kind": login.kind} | dict(token_response(login, person())))


@blueprint.delete("/admin/people/<name>/logins")
@operation("Revoke all logins and tokens of a user", NoContent)
def log_person_out(name: str) -> NoContent:
    """Revoke all logins and tokens, and thereby all browsers' access to this user's apps."""
    services().logins.revoke_all(name, person().name)
    return NoContent()


@blueprint.delete("/admin/people/<name>/logins/<login_id>")
@operation("Revoke one login or token", NoContent)
def revoke_login(name: str, login_id: str) -> NoContent:
    """Revoke one login or token."""
    services().logins.revoke_login(name, login_id, person().name)
    return NoContent()

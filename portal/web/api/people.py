"""Logins and tokens of all users, and their revocation; for administrators."""

from __future__ import annotations

from portal.core.auth.logins import Login
from portal.core.auth.people import PeopleQuery
from portal.web.api import admin
from portal.web.api.models.base import NoContent
from portal.web.api.models.logins import LoginListOut, LoginOut, PresenceListOut, PresenceOut
from portal.web.api.operation import operation
from portal.web.api.tokens import token_response
from portal.web.context import person, services
from portal.web.http.body import read_query

blueprint = admin.blueprint
"""Shared so that its guard protects these routes, too."""


@blueprint.get("/admin/people")
@operation("The users who are logged in", PresenceListOut, query=PeopleQuery)
def list_people() -> PresenceListOut:
    """A page of the users who have a login or a token."""
    page = services().logins.people(read_query(PeopleQuery))
    return PresenceListOut(
        people=[PresenceOut.of(logins) for logins in page.people], next_cursor=page.following
    )


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

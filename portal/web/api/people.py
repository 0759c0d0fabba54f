"""Who is logged in, for administrators: everybody's log-ins and tokens, and taking them back."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from portal.web.api.admin import blueprint
from portal.web.api.tokens import shown
from portal.web.context import person, services


@blueprint.get("/admin/people")
def people() -> ResponseReturnValue:
    """Everybody who has a log-in or a token."""
    return {
        "people": [
            {
                "name": found.user,
                "browsers": found.browsers,
                "tokens": found.tokens,
                "last_used": found.used.isoformat(),
            }
            for found in services().logins.active_users()
        ]
    }


@blueprint.get("/admin/people/<name>/logins")
def logins_of(name: str) -> ResponseReturnValue:
    """Somebody's log-ins and tokens."""
    found = services().logins.logins_of(name)
    return {"logins": [{"kind": login.kind, **shown(login, person())} for login in found]}


@blueprint.delete("/admin/people/<name>/logins")
def log_out(name: str) -> ResponseReturnValue:
    """Revoke all of them, and shut every browser out of this person's apps."""
    services().logins.revoke_all(name, person().name)
    return "", 204


@blueprint.delete("/admin/people/<name>/logins/<login_id>")
def log_out_one(name: str, login_id: str) -> ResponseReturnValue:
    """Revoke one of them."""
    services().logins.revoke_login(name, login_id, person().name)
    return "", 204

"""Time left and extension of an app's session, for its owner's browser at the app's origin.

Used by JupyterLab's extension (images/toolkit/jupyter). Responds only to a browser with the app's
cookie, only about this session, and only to requests of this origin itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from flask import Blueprint, jsonify, request
from flask.typing import ResponseReturnValue
from pydantic import BaseModel, ConfigDict, Field
from werkzeug.exceptions import Forbidden

from portal.core.auth.person import Person
from portal.core.session.countdown import countdown, extension_choices, retention_text
from portal.core.session.ended_lately import memory_kill
from portal.core.session.session import OVER, State
from portal.errors import Gone, Unauthorized
from portal.services.apps.gate import GateStatus
from portal.web.context import services, site_rules
from portal.web.gate.access import find_status, label_of_request, portal_url
from portal.web.http.body import read_model
from portal.web.http.rate_limit import Rate, RateLimiter

blueprint = Blueprint("own_session", __name__)

ADDRESS = "/.slipway/session"
READS = Rate(per_second=1.0, at_once=10)
"""A window polls four times a minute, and a browser may have many."""
EXTENSIONS = Rate(per_second=0.1, at_once=5)
pace = RateLimiter()


class ExtendBody(BaseModel):
    """The time to extend by."""

    model_config = ConfigDict(extra="forbid", strict=True)

    minutes: Annotated[int, Field(ge=1, le=525_600)]


@blueprint.get(ADDRESS)
def show() -> ResponseReturnValue:
    """The session's name and end, the folders to keep, and the possible extensions.

    With its id as `session`, 410 tells its end from a lost access (401).
    """
    return _answer(_admit(READS))


@blueprint.post(f"{ADDRESS}/extend")
def extend() -> ResponseReturnValue:
    """Extend the session, as its owner can at the portal; never from a public app."""
    gate = _admit(EXTENSIONS, _refuse_foreign_writes)
    if gate.public:
        # Visitors may have left a script in it.
        raise Forbidden("This app is open to everybody: extend the session at the portal.")
    owner = Person(gate.session.owner, False, gate.login)
    minutes = read_model(ExtendBody).minutes
    services().lifecycle.extend(owner, gate.session.id, minutes)
    return _answer(_require_status())


def _refuse_foreign() -> None:
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise Forbidden("This request came from another site.")


def _refuse_foreign_writes() -> None:
    _refuse_foreign()
    # A page of another origin can neither claim this origin nor send this header without asking.
    if request.headers.get("Origin") != services().settings.web.app_url(label_of_request()):
        raise Forbidden("This request came from another site.")
    if request.headers.get("X-Slipway") != "extend":
        raise Forbidden("This request did not come from Slipway's own program.")


def _admit(rate: Rate, refuse: Callable[[], None] = _refuse_foreign) -> GateStatus:
    # Without access, every request gets the same response. Refused ones do not count as the
    # owner's, so that another site cannot use up the owner's rate.
    gate = _require_status()
    refuse()
    pace.take(f"{request.endpoint} {gate.key}", rate)
    return gate


def _require_status() -> GateStatus:
    gate = find_status()
    if gate is None or not gate.inside:
        # Its end takes all cookies away. Only who was inside knows the id.
        if services().apps.has_ended(label_of_request(), request.args.get("session", "")):
            raise Gone("This session has ended.")
        raise Unauthorized("Open the app again from the portal.")
    return gate


def _answer(gate: GateStatus) -> ResponseReturnValue:
    session, now = gate.session, services().clock()
    time_left = countdown(session, site_rules(), now)
    room = 0 if gate.public else services().lifecycle.room(session)
    return jsonify(
        id=session.id,
        name=session.name,
        now=now.isoformat(),
        ends=time_left.ends.isoformat() if time_left.ends else None,
        unused=time_left.unused,
        ending=session.state is State.ENDING or session.state in OVER,
        why=session.end_text or session.stop_reason,
        kept=retention_text(session),
        extend=[{"minutes": m, "label": text} for m, text in extension_choices(room)],
        killed=session.oom_kills,
        killed_text=memory_kill(session),
        ended=f"{portal_url()}/open/{label_of_request()}",
        sessions=f"{portal_url()}/sessions",
    )

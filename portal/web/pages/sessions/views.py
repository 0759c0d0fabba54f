"""The Sessions page: the list, and ending sessions."""

from __future__ import annotations

import secrets

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.session.query import MAX_AT_ONCE, end_reason
from portal.errors import FieldError, InvalidRequest
from portal.web.context import person, polled, reads_together, services
from portal.web.http.paths import here, local_path
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.pages.listing import Parts
from portal.web.pages.sessions.list_view import SessionListView, list_of_request
from portal.web.pages.sessions.warnings import shown_until_next_change

PARTS = ("_bars.html", "_tabs.html", "_rows.html")
"""The parts that the page polls; each is one element of the page."""


def _parts(listing: SessionListView) -> Parts:
    return listing.parts(PARTS, rows=listing.rows, use=listing.use, status=listing.status)


@blueprint.get("/sessions")
@reads_together(cluster=True)
def sessions() -> ResponseReturnValue:
    """The page with the list."""
    listing = list_of_request()
    parts = _parts(listing)
    fresh = set(request.args.get("new", "").split(","))
    return render_template(
        "sessions.html",
        listing=listing,
        parts=parts.html,
        mark=parts.mark,
        fresh=[row.session.id for row in listing.rows if row.session.id in fresh],
        key=secrets.token_urlsafe(16),
        back=here(),
        person=listing.person,
    )


@blueprint.get("/sessions/rows")
@polled(cluster=True)
def rows() -> ResponseReturnValue:
    """The parts that the page polls; 204 if the browser already has them."""
    listing = list_of_request()
    shown_until_next_change(listing.page.sessions)
    return _parts(listing).answer()


@blueprint.get("/sessions/end")
def ask_end_all() -> ResponseReturnValue:
    """Ask for confirmation before ending the selected sessions."""
    return _ask(request.args.getlist("ids"))


@blueprint.get("/sessions/<session_id>/end")
def ask_end(session_id: str) -> ResponseReturnValue:
    """Ask for confirmation before ending a session; scripts show a dialog instead."""
    return _ask([session_id])


def _ask(ids: list[str]) -> ResponseReturnValue:
    back = local_path(request.args.get("back")) or "/sessions"
    if not ids:
        return redirect(back, 303)
    selected = services().sessions.get_many(person(), ids[:MAX_AT_ONCE])
    return render_template("end.html", sessions=selected, back=back, person=person())


@blueprint.post("/sessions/end")
def end() -> ResponseReturnValue:
    """End sessions. Idempotent."""
    ids = request.form.getlist("ids")
    if not 0 < len(ids) <= MAX_AT_ONCE:
        raise InvalidRequest([FieldError("ids", f"name 1 to {MAX_AT_ONCE} sessions")])
    try:
        reason = end_reason(request.form.get("reason", ""))
    except ValueError as error:
        raise InvalidRequest([FieldError("reason", str(error))]) from None
    services().sessions.stop_all(person(), ids, reason)
    return (
        rows() if by_htmx() else redirect(local_path(request.form.get("back")) or "/sessions", 303)
    )

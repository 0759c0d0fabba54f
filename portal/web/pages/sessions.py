"""The Sessions page: the list, and ending what is in it."""

from __future__ import annotations

import hashlib

from flask import make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from portal.core.offer import use_of
from portal.web.context import person, services
from portal.web.listing import FILTERS, listed
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.show import rows_for

PAGE = 100
"""Sessions on one page."""


def which() -> str:
    wanted = request.args.get("state", "running")
    return wanted if wanted in FILTERS else "running"


def _rows() -> tuple[str, str]:
    """The list as HTML, and a mark that changes when anything in it does."""
    picked = which()
    status = services().sessions.status
    found, cursor = listed(person(), FILTERS[picked], PAGE, request.args.get("cursor"), None)
    html = render_template(
        "_rows.html",
        rows=rows_for(person(), found),
        which=picked,
        cursor=cursor,
        use=use_of(status, person().name, request.args.get("group") or None)
        or use_of(status, person().name, None),
        status=status.slurm_status(),
        person=person(),
    )
    return html, hashlib.sha256(html.encode()).hexdigest()[:20]


@blueprint.get("/sessions")
def sessions() -> ResponseReturnValue:
    """The list, and the way to a new session."""
    html, mark = _rows()
    page = render_template(
        "sessions.html",
        rows_html=Markup(html),  # noqa: S704 - rendered by our own template just now
        mark=mark,
        which=which(),
        person=person(),
    )
    return make_response(page)


@blueprint.get("/sessions/rows")
def rows() -> ResponseReturnValue:
    """The list alone; nothing when the browser has it already."""
    html, mark = _rows()
    if request.headers.get("If-None-Match", "").strip('"') == mark:
        return "", 204
    response = make_response(html)
    response.headers["ETag"] = f'"{mark}"'
    return response


@blueprint.post("/sessions/<session_id>/stop")
def stop(session_id: str) -> ResponseReturnValue:
    """End a session; again is fine."""
    services().sessions.stop(person(), session_id)
    return rows() if by_htmx() else redirect(f"/sessions?state={which()}", 303)

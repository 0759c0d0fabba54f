"""The pages: what people see and press."""

from __future__ import annotations

import hashlib
import json

from flask import Blueprint, Response, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from portal.core.launch import parse_launch
from portal.core.offer import groups_of, use_of
from portal.core.session import OVER
from portal.errors import NotFound, PortalError, Unavailable
from portal.web import form as launch_form
from portal.web.auth.browser import require_login
from portal.web.context import person, services
from portal.web.enter import enter_url
from portal.web.form import LaunchForm
from portal.web.listing import FILTERS, listed
from portal.web.logtext import decode
from portal.web.paths import local_path
from portal.web.show import rows_for

blueprint = Blueprint("pages", __name__)

PAGE = 100
"""Sessions on one page."""
OPEN_TO_ALL = frozenset({"pages.healthz"})


@blueprint.before_request
def guard() -> ResponseReturnValue | None:
    """Let nobody in who is not logged in."""
    return None if request.endpoint in OPEN_TO_ALL else require_login()


@blueprint.get("/healthz")
def healthz() -> ResponseReturnValue:
    """Say that this process answers and reaches its database."""
    services().sessions.status.slurm_status()
    return "ok\n", {"Content-Type": "text/plain"}


@blueprint.get("/")
def start() -> ResponseReturnValue:
    """The sessions page is where everything begins."""
    return redirect("/sessions", 303)


def _filter() -> str:
    wanted = request.args.get("state", "running")
    return wanted if wanted in FILTERS else "running"


def _rows() -> tuple[str, str]:
    """The list as HTML, and a mark that changes when anything in it does."""
    which = _filter()
    status = services().sessions.status
    found, cursor = listed(person(), FILTERS[which], PAGE, request.args.get("cursor"), None)
    html = render_template(
        "_rows.html",
        rows=rows_for(person(), found),
        which=which,
        cursor=cursor,
        use=use_of(status, person().name, request.args.get("group") or None)
        or use_of(status, person().name, None),
        status=status.slurm_status(),
        person=person(),
    )
    return html, hashlib.sha256(html.encode()).hexdigest()[:20]


def _page(form: LaunchForm, status: int = 200) -> Response:
    html, mark = _rows()
    page = render_template(
        "sessions.html",
        form=form,
        rows_html=Markup(html),  # noqa: S704 - rendered by our own template just now
        mark=mark,
        which=_filter(),
        person=person(),
    )
    return make_response(page, status)


def _form(values: dict[str, str] | None = None) -> LaunchForm:
    catalog = services().sessions.catalog()
    groups = groups_of(services().sessions.status, person().name)
    return LaunchForm(catalog, groups, values or launch_form.first_values(catalog))


@blueprint.get("/sessions")
def sessions() -> ResponseReturnValue:
    """The launch panel and the list."""
    return _page(_form())


@blueprint.get("/sessions/rows")
def rows() -> ResponseReturnValue:
    """The list alone; nothing when the browser has it already."""
    html, mark = _rows()
    if request.headers.get("If-None-Match", "").strip('"') == mark:
        return "", 204
    response = make_response(html)
    response.headers["ETag"] = f'"{mark}"'
    return response


@blueprint.post("/sessions")
def launch() -> ResponseReturnValue:
    """Launch what the form asks for; what was entered stays when something is wrong."""
    form = _form(launch_form.entered(request.form))
    try:
        wanted = parse_launch(launch_form.to_request(request.form))
        made = services().sessions.launch_all(person(), wanted, request.form.get("key") or None)
    except PortalError as error:
        form = launch_form.with_error(form, error)
        return _panel(form, error.status) if _by_htmx() else _page(form, error.status)
    if not _by_htmx():
        return redirect("/sessions", 303)
    response = _panel(_form(launch_form.entered(request.form) | {"name": ""}), 200)
    response.headers["HX-Trigger"] = json.dumps({"launched": {"name": made[0].name}})
    return response


def _by_htmx() -> bool:
    return request.headers.get("HX-Request") == "true"


def _panel(form: LaunchForm, status: int) -> Response:
    response = make_response(render_template("_launch.html", form=form), status)
    # Tells the page's script that this error answer belongs into the panel.
    response.headers["X-Slipway-Panel"] = "launch"
    return response


@blueprint.post("/sessions/<session_id>/stop")
def stop(session_id: str) -> ResponseReturnValue:
    """End a session; again is fine."""
    services().sessions.stop(person(), session_id)
    return rows() if _by_htmx() else redirect(f"/sessions?state={_filter()}", 303)


@blueprint.post("/sessions/<session_id>/apps/<app>/open")
def open_app(session_id: str, app: str) -> ResponseReturnValue:
    """Start an app if need be, and go to its origin with a ticket."""
    return redirect(enter_url(services().access.open_app(person(), session_id, app)), 303)


@blueprint.get("/open/<label>")
def open_label(label: str) -> ResponseReturnValue:
    """Somebody came to an app's origin without its cookie: give the owner a ticket."""
    # Only as a page of its own: an app's script must not fetch or frame its way in here.
    if request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
        raise NotFound("There is nothing here.")
    if request.headers.get("Sec-Fetch-Dest", "document") != "document":
        raise NotFound("There is nothing here.")
    try:
        link = services().access.owner_link(person(), label)
    except NotFound:
        text = "Its session is over, or it is somebody else's."
        raise NotFound(f"There is no app at this address. {text}") from None
    return redirect(enter_url(link, local_path(request.args.get("next"))), 303)


@blueprint.get("/sessions/<session_id>/log")
def log(session_id: str) -> ResponseReturnValue:
    """The log's page; its text comes in pieces."""
    session = services().sessions.visible(person(), session_id)
    row = rows_for(person(), [session])[0]
    return render_template("log.html", row=row, person=person())


@blueprint.get("/sessions/<session_id>/log/text")
def log_text(session_id: str) -> ResponseReturnValue:
    """A piece of the log, and where to read on."""
    offset = max(request.args.get("offset", 0, type=int), 0)
    session = services().sessions.visible(person(), session_id)
    try:
        data = services().sessions.read_log(person(), session_id, offset)
    except Unavailable as error:
        return error.text, 503, {"Content-Type": "text/plain; charset=utf-8"}
    text, following = decode(data, offset)
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "X-Next-Offset": str(following),
        "X-Session-Over": "yes" if session.state in OVER else "no",
    }
    return text, 200, headers

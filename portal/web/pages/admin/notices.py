"""The administrators' page of announcements and maintenance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from flask import Response, flash, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue
from pydantic_core import PydanticCustomError

from portal.core.admin.etag import etag
from portal.core.notices.announcements import MOST, STATES, Announcement, AnnouncementRequest
from portal.core.notices.maintenance import Maintenance, MaintenanceRequest
from portal.core.validation import check, read_moment
from portal.errors import PortalError
from portal.web.context import person, services
from portal.web.numbers import trim
from portal.web.pages.admin.forms import AdminForm, refused
from portal.web.pages.admin.views import blueprint

START = "/admin/announcements"
_FIELDS = (
    "text", "link.title", "link.url", "level", "starts", "ends", "dismissable", "on_login"
)  # fmt: skip
_MAINTENANCE = ("until", "message")
_PLAIN = re.compile(r"\d{4,6}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", re.ASCII)
"""A time as browsers' fields have it."""
_BOXES = ("dismissable", "on_login")


def _page(page: str, status: int = 200, **values: Any) -> Response:
    html = render_template(page, part="announcements", person=person(), **values)
    return make_response(html, status)


def _saved(text: str) -> ResponseReturnValue:
    flash(text)
    return redirect(START, 303)


@blueprint.get("/announcements")
def announcements() -> ResponseReturnValue:
    """All announcements, and maintenance."""
    return _list(_maintenance_form(services().notices.maintenance()))


def _list(form: AdminForm, status: int = 200) -> Response:
    now, found = services().clock(), services().notices.readable(person())
    return _page(
        "admin_announcements.html",
        status,
        form=form,
        maintenance=services().notices.maintenance(),
        announcements=[(one, one.state(now)) for one in found],
        states=STATES,
        most=MOST,
    )


@blueprint.get("/announcements/new")
def new_announcement() -> ResponseReturnValue:
    """An empty form."""
    values = dict.fromkeys(_FIELDS, "") | {"level": "information", "dismissable": "on"}
    return _form(AdminForm(values))


@blueprint.get("/announcements/<id>/edit")
def edit_announcement(id: str) -> ResponseReturnValue:
    """An announcement in its form."""
    found = services().notices.announcement(person(), id)
    return _form(AdminForm(_values(found), etag(found)), id)


def _form(form: AdminForm, id: str | None = None, status: int = 200) -> Response:
    return _page("admin_announcement.html", status, form=form, id=id)


def _values(found: Announcement) -> dict[str, str]:
    return {
        "text": found.text,
        "link.title": found.link_title,
        "link.url": found.link_url,
        "level": found.level,
        "starts": _written(found.starts),
        "ends": _written(found.ends),
        "dismissable": "on" if found.dismissable else "",
        "on_login": "on" if found.on_login else "",
    }


@blueprint.post("/announcements")
def announce() -> ResponseReturnValue:
    """Write a new announcement."""
    return _save(None)


@blueprint.post("/announcements/<id>")
def change_announcement(id: str) -> ResponseReturnValue:
    """Change an announcement, unless another administrator has changed it since."""
    return _save(id)


def _save(id: str | None) -> ResponseReturnValue:
    values, seen = _entered(_FIELDS), request.form.get("seen", "")
    notices = services().notices
    try:
        asked = check(AnnouncementRequest, _announcement(values))
        if id is None:
            notices.announce(person(), asked)
        else:
            notices.change(person(), id, asked, seen or None)
    except PortalError as error:
        form = refused(_again(values, ("starts", "ends")), seen, error)
        return _form(form, id, error.status)
    return _saved("Saved the announcement.")


def _announcement(values: Mapping[str, str]) -> dict[str, Any]:
    """The request body from the fields of an announcement."""
    ticked: dict[str, object] = {"": False, "on": True}
    link = {name: trim(values[f"link.{name}"]) for name in ("title", "url")}
    return {
        "text": trim(values["text"]),
        "link": link if any(link.values()) else None,
        "level": values["level"],
        "starts": _moment(values["starts"]),
        "ends": _moment(values["ends"]),
        **{name: ticked.get(values[name], values[name]) for name in _BOXES},
    }


@blueprint.get("/announcements/<id>/delete")
def ask_withdraw(id: str) -> ResponseReturnValue:
    """The confirmation page without JavaScript; scripts show a dialog instead."""
    found = services().notices.announcement(person(), id)
    return _page("admin_announcement_delete.html", announcement=found, seen=etag(found))


@blueprint.post("/announcements/<id>/delete")
def withdraw(id: str) -> ResponseReturnValue:
    """Delete an announcement."""
    services().notices.withdraw(person(), id, request.form.get("seen"))
    return _saved("Deleted the announcement.")


# Maintenance


@blueprint.post("/maintenance")
def begin_maintenance() -> ResponseReturnValue:
    """Begin maintenance, or change its end and message."""
    values, seen = _entered(_MAINTENANCE), request.form.get("seen", "")
    body = {"until": _moment(values["until"]), "message": trim(values["message"])}
    try:
        asked = check(MaintenanceRequest, body)
        services().notices.begin_maintenance(person(), asked, seen)
    except PortalError as error:
        return _list(refused(_again(values, ("until",)), seen, error), error.status)
    launches = "what is launched waits until then" if asked.until else "launches are refused"
    return _saved(f"Maintenance is on: sessions go on, {launches}.")


@blueprint.post("/maintenance/end")
def end_maintenance() -> ResponseReturnValue:
    """End maintenance."""
    services().notices.end_maintenance(person(), request.form.get("seen"))
    return _saved("Maintenance is over. Sessions that waited for its end start now.")


def _maintenance_form(found: Maintenance | None) -> AdminForm:
    if found is None:
        return AdminForm(dict.fromkeys(_MAINTENANCE, ""))
    values = {"until": _written(found.until), "message": found.message}
    return AdminForm(values, etag(found))


# Times in forms


def _written(time: datetime | None) -> str:
    """A time as browsers' fields have it, in UTC; the page's script converts it."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M}" if time else ""


def _moment(text: str) -> str | None:
    """A field's time for the request: the script sends it with its offset, else it is UTC."""
    text = trim(text)
    if not _PLAIN.fullmatch(text):
        return text or None
    return f"{text}{'' if text.count(':') == 2 else ':00'}Z"


def _again(values: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Refused values as the form shows them: times in UTC, without an offset."""
    return values | {name: _shown(values[name]) for name in names}


def _shown(text: str) -> str:
    try:
        return _written(read_moment(_moment(text)))
    except PydanticCustomError:
        return ""


def _entered(names: tuple[str, ...]) -> dict[str, str]:
    return {name: request.form.get(name, "") for name in names}

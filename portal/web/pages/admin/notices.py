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
from portal.web.pages.admin.forms import AdminForm, rejected
from portal.web.pages.admin.views import blueprint

START = "/admin/announcements"
_FIELDS = (
    "text", "link.title", "link.url", "level", "starts", "ends", "dismissable", "on_login"
)  # fmt: skip
_MAINTENANCE = ("until", "message")
_PLAIN = re.compile(r"\d{4,6}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", re.ASCII)
"""A time as browsers' date fields send it."""
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
    now, announcements = services().clock(), services().notices.readable(person())
    return _page(
        "admin_announcements.html",
        status,
        form=form,
        maintenance=services().notices.maintenance(),
        announcements=[(announcement, announcement.state(now)) for announcement in announcements],
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
    announcement = services().notices.announcement(person(), id)
    return _form(AdminForm(_values(announcement), etag(announcement)), id)


def _form(form: AdminForm, id: str | None = None, status: int = 200) -> Response:
    return _page("admin_announcement.html", status, form=form, id=id)


def _values(announcement: Announcement) -> dict[str, str]:
    return {
        "text": announcement.text,
        "link.title": announcement.link_title,
        "link.url": announcement.link_url,
        "level": announcement.level,
        "starts": _written(announcement.starts),
        "ends": _written(announcement.ends),
        "dismissable": "on" if announcement.dismissable else "",
        "on_login": "on" if announcement.on_login else "",
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
    values, if_match = _entered(_FIELDS), request.form.get("seen", "")
    notices = services().notices
    try:
        body = check(AnnouncementRequest, _announcement(values))
        if id is None:
            notices.announce(person(), body)
        else:
            notices.change(person(), id, body, if_match or None)
    except PortalError as error:
        form = rejected(_again(values, ("starts", "ends")), if_match, error)
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
    announcement = services().notices.announcement(person(), id)
    return _page(
        "admin_announcement_delete.html", announcement=announcement, etag=etag(announcement)
    )


@blueprint.post("/announcements/<id>/delete")
def withdraw(id: str) -> ResponseReturnValue:
    """Delete an announcement."""
    services().notices.withdraw(person(), id, request.form.get("seen"))
    return _saved("Deleted the announcement.")


# Maintenance


@blueprint.post("/maintenance")
def begin_maintenance() -> ResponseReturnValue:
    """Begin maintenance, or change its end and message."""
    values, if_match = _entered(_MAINTENANCE), request.form.get("seen", "")
    body = {"until": _moment(values["until"]), "message": trim(values["message"])}
    try:
        change = check(MaintenanceRequest, body)
        services().notices.begin_maintenance(person(), change, if_match)
    except PortalError as error:
        return _list(rejected(_again(values, ("until",)), if_match, error), error.status)
    launches = "what is launched waits until then" if change.until else "launches are refused"
    return _saved(f"Maintenance is on: sessions go on, {launches}.")


@blueprint.post("/maintenance/end")
def end_maintenance() -> ResponseReturnValue:
    """End maintenance."""
    services().notices.end_maintenance(person(), request.form.get("seen"))
    return _saved("Maintenance is over. Sessions that waited for its end start now.")


def _maintenance_form(maintenance: Maintenance | None) -> AdminForm:
    if maintenance is None:
        return AdminForm(dict.fromkeys(_MAINTENANCE, ""))
    values = {"until": _written(maintenance.until), "message": maintenance.message}
    return AdminForm(values, etag(maintenance))


# Times in forms


def _written(time: datetime | None) -> str:
    """A time as browsers' date fields show it, in UTC; the page's script converts it."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M}" if time else ""


def _moment(text: str) -> str | None:
    """The time of a field for the request; UTC unless the script added the offset."""
    text = trim(text)
    if not _PLAIN.fullmatch(text):
        return text or None
    return f"{text}{'' if text.count(':') == 2 else ':00'}Z"


def _again(values: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Rejected values as the form shows them: times in UTC, without an offset."""
    return values | {name: _shown(values[name]) for name in names}


def _shown(text: str) -> str:
    try:
        return _written(read_moment(_moment(text)))
    except PydanticCustomError:
        return ""


def _entered(names: tuple[str, ...]) -> dict[str, str]:
    return {name: request.form.get(name, "") for name in names}

"""Launching: what is entered becomes a request, and what was wrong comes back to its field."""

from __future__ import annotations

import json

from flask import Response, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.launch import parse_launch
from portal.errors import PortalError
from portal.web import form as launch_form
from portal.web.context import person, services
from portal.web.form import LaunchForm
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.pages.sessions import new_form, page_with


@blueprint.post("/sessions")
def launch() -> ResponseReturnValue:
    """Launch what the form asks for; what was entered stays when something is wrong."""
    form = new_form(launch_form.entered(request.form))
    try:
        wanted = parse_launch(launch_form.to_request(request.form))
        made = services().sessions.launch_all(person(), wanted, request.form.get("key") or None)
    except PortalError as error:
        form = launch_form.with_error(form, error)
        return _panel(form, error.status) if by_htmx() else page_with(form, error.status)
    if not by_htmx():
        return redirect("/sessions", 303)
    response = _panel(new_form(launch_form.entered(request.form) | {"name": ""}), 200)
    response.headers["HX-Trigger"] = json.dumps({"launched": {"name": made[0].name}})
    return response


def _panel(form: LaunchForm, status: int) -> Response:
    response = make_response(render_template("_launch.html", form=form), status)
    # Tells the page's script that this error answer belongs into the panel.
    response.headers["X-Slipway-Panel"] = "launch"
    return response

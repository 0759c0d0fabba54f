"""The blueprint of all pages: requires a login."""

from __future__ import annotations

from flask import Blueprint, redirect, request
from flask.typing import ResponseReturnValue

from portal.web.auth.browser import require_login
from portal.web.context import services

blueprint = Blueprint("pages", __name__)

OPEN_TO_ALL = frozenset(
    {
        "pages.healthz",
        "pages.help_page",
        "pages.ssh_port",
        "pages.ssh_host_key",
        "pages.ask_to_stop",
        "pages.stop_mail",
    }
)


@blueprint.before_request
def guard() -> ResponseReturnValue | None:
    """Require a login."""
    return None if request.endpoint in OPEN_TO_ALL else require_login()


@blueprint.get("/healthz")
def healthz() -> ResponseReturnValue:
    """Confirm that this process responds and reaches its database."""
    services().cluster.slurm_status()
    return "ok\n", {"Content-Type": "text/plain"}


@blueprint.get("/")
def start() -> ResponseReturnValue:
    """Redirect to the Sessions page."""
    return redirect("/sessions", 303)


def by_htmx() -> bool:
    """Whether the request comes from htmx, which expects only a part of the page."""
    return request.headers.get("HX-Request") == "true"

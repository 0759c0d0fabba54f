"""What all pages share: who may come in, and how a form's answer finds its way."""

from __future__ import annotations

from flask import Blueprint, redirect, request
from flask.typing import ResponseReturnValue

from portal.web.auth.browser import require_login
from portal.web.context import services

blueprint = Blueprint("pages", __name__)

OPEN_TO_ALL = frozenset({"pages.healthz"})


@blueprint.before_request
def guard() -> ResponseReturnValue | None:
    """Let nobody in who is not logged in."""
    return None if request.endpoint in OPEN_TO_ALL else require_login()


@blueprint.get("/healthz")
def healthz() -> ResponseReturnValue:
    """Say that this process answers and reaches its database."""
    services().cluster.slurm_status()
    return "ok\n", {"Content-Type": "text/plain"}


@blueprint.get("/")
def start() -> ResponseReturnValue:
    """The sessions page is where everything begins."""
    return redirect("/sessions", 303)


def by_htmx() -> bool:
    """Whether a script of our page asks, which wants a part of the page and not all of it."""
    return request.headers.get("HX-Request") == "true"

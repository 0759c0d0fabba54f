"""REST API, version 1, described by its own OpenAPI document."""

from __future__ import annotations

from flask import Blueprint

from portal.web.auth.bearer import require_token
from portal.web.security import csrf

PREFIX = "/api/v1"


def guarded(name: str, for_services: bool = False, area: str = "") -> Blueprint:
    """A blueprint of the API that requires a token; cookies are ignored.

    `for_services`: whether services may send these requests for users. `area`: "files:" if the
    token needs scopes of that area.
    """
    blueprint = open_to_all(name)

    @blueprint.before_request
    def guard() -> None:
        require_token(for_services, area)

    return blueprint


def open_to_all(name: str) -> Blueprint:
    """A blueprint of the API that needs no token."""
    blueprint = Blueprint(f"api_{name}", __name__, url_prefix=PREFIX)
    csrf.exempt(blueprint)
    return blueprint

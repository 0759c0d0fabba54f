"""What every view needs: the services it was built on and the person who asks."""

from __future__ import annotations

from typing import cast

from flask import Flask, current_app, g, request

from portal.core.auth.person import Person
from portal.errors import Unauthorized
from portal.services.admin.administration import caller_address
from portal.services.container import Services

EXTENSION = "slipway"


def services() -> Services:
    """The services of the running application."""
    return cast(Services, current_app.extensions[EXTENSION])


def install(app: Flask) -> None:
    """Tell the journal where each request comes from."""

    @app.before_request
    def note_address() -> None:
        # Threads are used again: every request sets it, so none inherits another's.
        caller_address.set(request.remote_addr or "")


def set_person(person: Person) -> None:
    """Remember who asks; only the front doors (login cookie, API token) call this."""
    g.person = person


def person() -> Person:
    """Who asks; raises Unauthorized when no front door let anybody in."""
    if "person" not in g:
        raise Unauthorized("Please log in.")
    return cast(Person, g.person)

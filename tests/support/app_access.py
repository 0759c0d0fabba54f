"""Browsers' access to apps."""

from __future__ import annotations

from sqlmodel import Session as Database

from portal.core.auth.logins import Login
from portal.core.auth.person import Person, hash_secret
from portal.store.tables import GrantRow, TicketRow
from tests.support.fakes import World


def enter_app(world: World, person: Person, session: str, app: str) -> str:
    """Click and redeem the ticket; returns the key in HAProxy's map."""
    link = world.apps.open_app(person, session, app)
    entered = world.gate.enter(link.label, link.ticket)
    assert entered.cookie is not None
    return f"{link.label}.{hash_secret(entered.cookie)}"


def other_browser(world: World) -> Person:
    """Alice in another browser, with a login of its own."""
    _, login = world.services.logins.open_browser("alice")
    return world.services.logins.person(login)


def add_row(world: World, row: GrantRow | TicketRow) -> None:
    """Add a row to the database, as a request does at the very moment of a revocation."""
    with Database(world.engine) as db:
        db.add(row)
        db.commit()


def opens_app(world: World, login: Login, cookie: str) -> None:
    """A browser with this login has access to an app, and a ticket for another."""
    grant = GrantRow(
        cookie_hash=cookie,
        label="10000",
        session="s" * 32,
        app="terminal",
        user=login.user,
        login=login.hash,
        created=world.clock(),
    )
    add_row(world, grant)
    world.routes.map[f"10000.{cookie}"] = "10.0.0.1@1@x"

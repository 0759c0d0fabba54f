"""Tickets and grants are checked at each use against what they were issued for.

Revocation also deletes them; here invalid ones are put into the database, as after a fault.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlmodel import Session as Database
from sqlmodel import select

from portal.core.apps.access import Grant, OpenApp, RedeemedTicket, Ticket
from portal.core.session.session import Session, State
from portal.store.tables import GrantRow, SessionRow, TicketRow
from tests.support.fakes import World
from tests.support.sessions import ALICE, REQUEST, make_ready

OTHERS = [
    {"user": "bob"},
    {"app": "jupyterlab"},
    {"session": "0" * 32},
    {"label": "20000"},  # outside the range that labels are drawn from
]


@pytest.fixture
def session(world: World) -> Session:
    """A running session of alice's with two apps."""
    session = make_ready(world, world.launch(ALICE, REQUEST))
    for app in ("terminal", "jupyterlab"):
        world.apps.open_app(ALICE, session.id, app)
    return session


@pytest.fixture
def terminal(world: World, session: Session) -> OpenApp:
    """Her terminal, with an origin."""
    return next(app for app in world.access_store.apps(session.id) if app.app == "terminal")


def add(world: World, row: GrantRow | TicketRow) -> None:
    """Add a row to the database."""
    with Database(world.engine) as db:
        db.add(row)
        db.commit()


def grant(world: World, app: OpenApp, cookie: str = "good") -> Grant:
    """Add a valid grant for alice's login."""
    made_for = (app.label, app.session, app.app, ALICE.name, ALICE.login)
    return Grant(cookie, *made_for, created=world.clock())


def ticket(world: World, app: OpenApp) -> Ticket:
    """Add a valid ticket for alice's login."""
    made_for = (app.label, app.session, app.app, ALICE.name, ALICE.login)
    return Ticket("t", *made_for, expires=world.clock() + timedelta(minutes=1))


def redeem(world: World, label: str, *cookies: str) -> RedeemedTicket | None:
    """Redeem the ticket at an origin, with a browser that has these cookies."""
    return world.access_store.redeem("t", label, "new", cookies, world.clock(), 16)


def at_origin(world: World, label: str, *cookies: str) -> str:
    """The cookie that is valid at an origin; "" if none is."""
    entry = world.access_store.at_origin(label, cookies)
    assert entry is not None
    return entry.grant.cookie_hash if entry.grant else ""


def test_the_first_valid_cookie_counts(world: World, terminal: OpenApp) -> None:
    for cookie in ("first", "second"):
        add(world, GrantRow(**vars(grant(world, terminal, cookie))))
    assert at_origin(world, terminal.label, "planted", "second", "first") == "second"
    assert at_origin(world, terminal.label, "planted") == ""
    assert at_origin(world, terminal.label) == ""


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_grant_for_anything_else_is_not_valid(
    world: World, terminal: OpenApp, other: dict[str, str]
) -> None:
    add(world, GrantRow(**{**vars(grant(world, terminal)), **other}))
    assert at_origin(world, terminal.label, "good") == ""
    add(world, TicketRow(**vars(ticket(world, terminal))))
    redeemed = redeem(world, terminal.label, "good")
    assert redeemed is not None
    assert (redeemed.new, redeemed.grant.cookie_hash) == (True, "new")


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_ticket_for_anything_else_is_not_redeemed(
    world: World, terminal: OpenApp, other: dict[str, str]
) -> None:
    add(world, TicketRow(**{**vars(ticket(world, terminal)), **other}))
    assert redeem(world, terminal.label) is None
    assert redeem(world, terminal.label) is None
    with Database(world.engine) as db:
        assert db.exec(select(GrantRow)).all() == []


def test_a_ticket_is_not_redeemed_after_the_end(world: World, terminal: OpenApp) -> None:
    add(world, TicketRow(**vars(ticket(world, terminal))))
    with Database(world.engine) as db:
        row = db.get_one(SessionRow, terminal.session)
        row.state = State.FINISHED
        db.commit()
    assert redeem(world, terminal.label) is None


def test_a_ticket_is_redeemed_once(world: World, terminal: OpenApp) -> None:
    add(world, TicketRow(**vars(ticket(world, terminal))))
    redeemed = redeem(world, terminal.label)
    assert redeemed is not None
    assert redeemed.grant == replace(grant(world, terminal), cookie_hash="new")
    assert (redeemed.opened.app, redeemed.session_apps.session.id) == ("terminal", terminal.session)
    assert redeem(world, terminal.label) is None


def test_a_browser_keeps_its_cookie_for_the_same_login_only(
    world: World, terminal: OpenApp
) -> None:
    """Logging out must revoke access that was gained by that login."""
    add(world, GrantRow(**vars(replace(grant(world, terminal, "phone"), login="phone"))))
    add(world, GrantRow(**vars(grant(world, terminal, "desk"))))
    add(world, TicketRow(**vars(ticket(world, terminal))))
    redeemed = redeem(world, terminal.label, "planted", "phone", "desk")
    assert redeemed is not None
    assert (redeemed.new, redeemed.grant.cookie_hash) == (False, "desk")
    add(world, TicketRow(**vars(ticket(world, terminal))))
    redeemed = redeem(world, terminal.label, "phone")
    assert redeemed is not None
    assert (redeemed.new, redeemed.grant.cookie_hash) == (True, "new")

"""The database transactions of a click on an app, and what one transaction keeps together."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlmodel import Session as Database
from sqlmodel import select

from portal.core.admin.audit import AuditFilter
from portal.core.apps.access import AppOptions, AppState
from portal.core.session.session import Session, State
from portal.errors import Conflict, NotFound
from portal.store.tables import AppRow, TicketRow
from tests.support.fakes import World
from tests.support.sessions import ADMIN, ALICE, BOB, REQUEST, make_ready
from tests.support.transactions import transactions


@pytest.fixture
def session(world: World) -> Session:
    """Alice's session, with JupyterLab and an app with a prompt running."""
    session = make_ready(world, world.launch(ALICE, REQUEST))
    for app in ("notebook", "any"):
        world.apps.open_app(
            ALICE, session.id, app, AppOptions(asked="serve" if app == "any" else None)
        )
    for server in ("jupyterlab", "any"):
        world.reports.note_app(session, server, AppState.READY)
    world.clock.advance(minutes=10)
    return session


def tickets(world: World) -> int:
    """The number of tickets that are not redeemed."""
    with Database(world.engine) as db:
        return len(db.exec(select(TicketRow)).all())


def opened(world: World) -> int:
    """The number of audit events that an app was opened."""
    events = world.services.administration.events
    return len(events(ADMIN, AuditFilter(action="app.open"), 100, None)[0])


@pytest.mark.parametrize("app", ["jupyterlab", "notebook"])
def test_a_click_on_a_running_app(world: World, session: Session, app: str) -> None:
    world.apps.open_app(ALICE, session.id, app)
    world.clock.advance(minutes=10)
    world.services.logins.expire()
    before = opened(world)
    with transactions(world) as begun:
        link = world.apps.open_app(ALICE, session.id, app)
        assert begun == ["write"]
        entered = world.gate.enter(link.label, link.ticket)
        assert begun == ["write", "write", "read"]
    assert entered.cookie is not None
    assert len(world.routes.map) == 1
    # Everything that such a click must store.
    assert opened(world) == before + 1
    found = world.store.get(session.id)
    assert found is not None
    assert found.last_used == world.clock()
    # Shortly afterwards, the use is not stored again.
    world.clock.advance(seconds=10)
    world.apps.open_app(ALICE, session.id, app)
    again = world.store.get(session.id)
    assert again is not None
    assert again.last_used == found.last_used


def test_a_click_with_the_current_answer(world: World, session: Session) -> None:
    """The launcher's form always sends the answer."""
    with transactions(world) as begun:
        world.apps.open_app(ALICE, session.id, "any", AppOptions(asked="serve"))
    assert begun == ["write"]
    assert world.runners.stopped == []


def test_a_click_while_the_session_is_queued(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.apps.open_app(ALICE, session.id, "terminal")
    with transactions(world) as begun:
        assert world.apps.open_app(ALICE, session.id, "terminal").state is AppState.WANTED
    assert begun == ["write"]


def test_a_ticket_its_event_and_the_use_are_stored_together_or_not_at_all(
    world: World, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(**_values: object) -> None:
        raise SystemExit("killed")

    world.clock.advance(minutes=10)
    world.services.logins.expire()
    with monkeypatch.context() as patch:
        patch.setattr("portal.store.access.AuditRow", crash)
        with pytest.raises(SystemExit):
            world.apps.open_app(ALICE, session.id, "notebook")
    found = world.store.get(session.id)
    assert found is not None
    assert found.last_used is not None
    assert world.clock() - found.last_used >= timedelta(minutes=10)
    assert tickets(world) == 0


def test_no_ticket_for_others_and_none_after_the_end(world: World, session: Session) -> None:
    before = tickets(world)
    for person in (BOB, ADMIN):
        with pytest.raises(NotFound):
            world.apps.open_app(person, session.id, "notebook")
    for unknown in ("", "0" * 32):
        with pytest.raises(NotFound):
            world.apps.open_app(ALICE, unknown, "notebook")
    world.force(session.id, state=State.ENDING)
    with pytest.raises(Conflict):
        world.apps.open_app(ALICE, session.id, "notebook")
    assert tickets(world) == before


def test_a_click_reopens_a_closed_app(world: World, session: Session) -> None:
    world.apps.close_app(ALICE, session.id, "any")
    assert next(app for app in world.apps.opened(session.id) if app.app == "any").closed
    world.apps.open_app(ALICE, session.id, "any")
    assert not next(app for app in world.apps.opened(session.id) if app.app == "any").closed


@pytest.mark.parametrize("moved", ["notebook", "jupyterlab"])
def test_an_app_moves_from_an_origin_that_is_no_longer_served(
    world: World, session: Session, moved: str
) -> None:
    """The administrators have changed the pool; its own origin, or its server's, is outside."""
    with Database(world.engine) as db:
        db.get_one(AppRow, (session.id, moved)).label = "9"
        db.commit()
    world.apps.open_app(ALICE, session.id, "notebook")
    assert "9" not in {app.label for app in world.apps.opened(session.id)}


def test_the_gate_reads_once_and_writes_nothing(world: World, session: Session) -> None:
    link = world.apps.open_app(ALICE, session.id, "notebook")
    cookie = world.gate.enter(link.label, link.ticket).cookie or ""
    world.routes.map.clear()
    with transactions(world) as begun:
        for cookies in ([cookie], [*"1234567", cookie], [cookie, *"1234567"]):
            assert world.gate.status(link.label, cookies).inside
        with pytest.raises(NotFound):
            world.gate.status(link.label, [*"12345678"])
    assert begun == ["read"] * 4
    assert world.routes.map == {}


def test_a_browser_restores_its_lost_route_with_its_ticket(world: World, session: Session) -> None:
    link = world.apps.open_app(ALICE, session.id, "notebook")
    cookie = world.gate.enter(link.label, link.ticket).cookie or ""
    before = dict(world.routes.map)
    world.routes.map.clear()
    link = world.apps.open_app(ALICE, session.id, "notebook")
    assert world.gate.enter(link.label, link.ticket, ["planted", cookie]).cookie is None
    assert world.routes.map == before


def test_a_route_revoked_meanwhile_is_not_restored(world: World, session: Session) -> None:
    """The data that the gate has read may be outdated when it requests the route."""
    link = world.apps.open_app(ALICE, session.id, "notebook")
    cookie = world.gate.enter(link.label, link.ticket).cookie or ""
    status = world.gate.status(link.label, [cookie])
    world.apps.close_app(ALICE, session.id, "notebook")
    world.gate.restore_route(status)
    assert world.routes.map == {}

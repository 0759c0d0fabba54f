"""From a click to an app, and its end."""

from __future__ import annotations

import pytest

from portal.core.apps.access import AppState
from portal.core.apps.origins import port_of
from portal.core.session_job.runner_protocol import ReadyMessage
from portal.errors import Conflict, NotFound, Unauthorized
from tests.support.app_access import enter_app, other_browser
from tests.support.fakes import World
from tests.support.sessions import ADMIN, ALICE, BOB, REQUEST, make_ready, token_of


def test_ticket_cookie_route(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    key = enter_app(world, ALICE, session.id, "jupyterlab")
    assert world.routes.map == {}
    world.reports.note_app(session, "jupyterlab", AppState.READY)
    assert world.routes.map == {key: f"10.0.0.1@40000@jupyterlab.{session.id}.slipway"}


def test_an_app_that_is_ready_is_open_at_once(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    enter_app(world, ALICE, session.id, "terminal")
    world.reports.note_app(session, "terminal", AppState.READY)
    assert enter_app(world, ALICE, session.id, "terminal") in world.routes.map
    assert len(world.runners.requests) == 1


def test_notebook_shares_the_server_and_has_its_own_origin(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    lab = world.apps.open_app(ALICE, session.id, "jupyterlab")
    book = world.apps.open_app(ALICE, session.id, "notebook")
    assert lab.label != book.label
    assert [order["name"] for _, order in world.runners.requests] == ["jupyterlab"]
    assert world.gate.enter(book.label, book.ticket).path == "/tree"
    world.reports.note_app(session, "jupyterlab", AppState.READY)
    assert [value.split("@")[2] for value in world.routes.map.values()] == [
        f"jupyterlab.{session.id}.slipway"
    ]


def test_an_app_opened_while_pending_starts_with_the_session(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.apps.open_app(ALICE, session.id, "notebook")
    world.slurm.start(world.slurm.jobs[0])
    known = world.services.runner_calls.authenticate(session.id, token_of(world))
    answer = world.services.runner_calls.mark_ready(
        known, ReadyMessage(job_id="1", node="n1", port=40000, csr="csr")
    )
    assert [order["name"] for order in answer.start] == ["jupyterlab"]
    assert answer.start[0]["script"] == "jupyter lab"


def test_a_ticket_is_valid_once_at_its_own_origin_and_for_a_minute(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    first = world.apps.open_app(ALICE, session.id, "terminal")
    other = world.apps.open_app(ALICE, session.id, "jupyterlab")
    with pytest.raises(Unauthorized):
        world.gate.enter(other.label, first.ticket)
    world.gate.enter(first.label, first.ticket)
    with pytest.raises(Unauthorized):
        world.gate.enter(first.label, first.ticket)
    world.clock.advance(seconds=61)
    with pytest.raises(Unauthorized):
        world.gate.enter(other.label, other.ticket)


def test_nobody_else_has_access_not_even_an_administrator(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    label = world.apps.open_app(ALICE, session.id, "terminal").label
    for person in (BOB, ADMIN):
        with pytest.raises(NotFound):
            world.apps.open_app(person, session.id, "terminal")
        with pytest.raises(NotFound):
            world.apps.owner_link(person, label)
    assert world.apps.owner_link(ALICE, label).label == label


def test_an_app_that_the_image_does_not_offer(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    with pytest.raises(NotFound):
        world.apps.open_app(ALICE, session.id, "rstudio")


def test_stopping_revokes_every_route(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    enter_app(world, ALICE, session.id, "terminal")
    world.reports.note_app(session, "terminal", AppState.READY)
    assert world.routes.map
    late = world.apps.open_app(ALICE, session.id, "terminal")
    world.sessions.stop(ALICE, session.id)
    assert world.routes.map == {}
    with pytest.raises(Unauthorized):
        world.gate.enter(late.label, late.ticket)
    with pytest.raises(Conflict):
        world.apps.open_app(ALICE, session.id, "terminal")


def test_logging_out_revokes_what_that_login_opened(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    desk, phone = other_browser(world), other_browser(world)
    enter_app(world, desk, session.id, "terminal")
    kept = enter_app(world, phone, session.id, "terminal")
    world.reports.note_app(session, "terminal", AppState.READY)
    assert len(world.routes.map) == 2
    world.services.logins.log_out(desk)
    assert list(world.routes.map) == [kept]


def test_a_restarted_haproxy_gets_its_routes_back(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    enter_app(world, ALICE, session.id, "terminal")
    world.reports.note_app(session, "terminal", AppState.READY)
    before = dict(world.routes.map)
    world.routes.alive = False
    world.routes.map.clear()
    assert world.proxy.restore()
    assert world.routes.map == before
    assert not world.proxy.restore()


def test_the_gate_reports_progress_to_the_owner_and_restores_the_route(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    link = world.apps.open_app(ALICE, session.id, "terminal")
    cookie = world.gate.enter(link.label, link.ticket).cookie or ""
    status = world.gate.status(link.label, [cookie])
    assert status.state is AppState.STARTING
    world.gate.restore_route(status)
    assert world.routes.map == {}
    world.reports.note_app(session, "terminal", AppState.READY)
    before = dict(world.routes.map)
    world.routes.map.clear()
    status = world.gate.status(link.label, ["guessed", cookie])
    assert (status.state, status.inside) == (AppState.READY, True)
    assert world.routes.map == {}
    world.gate.restore_route(status)
    assert world.routes.map == before
    with pytest.raises(NotFound):
        world.gate.status(link.label, ["guessed"])


def test_a_failed_app_can_be_restarted(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    enter_app(world, ALICE, session.id, "terminal")
    world.reports.note_app(session, "terminal", AppState.FAILED, "did not answer", "last line")
    assert world.routes.map == {}
    assert world.apps.open_app(ALICE, session.id, "terminal").state is AppState.STARTING
    assert len(world.runners.requests) == 2


def test_a_failed_app_is_started_as_soon_as_its_runner_responds(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    enter_app(world, ALICE, session.id, "terminal")
    world.reports.note_app(session, "terminal", AppState.FAILED, "did not answer", "last line")
    world.runners.unreachable = True
    assert world.apps.open_app(ALICE, session.id, "terminal").state is AppState.WANTED
    world.runners.unreachable = False
    world.clock.advance(seconds=6)
    world.worker.retry_app_starts()
    assert len(world.runners.requests) == 2
    assert world.access_store.apps(session.id)[0].state is AppState.STARTING


def test_only_ready_apps_get_their_routes_back(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    enter_app(world, ALICE, session.id, "terminal")
    world.reports.note_app(session, "terminal", AppState.FAILED)
    world.routes.alive = False
    assert world.proxy.restore()
    assert world.routes.map == {}


def test_a_name_of_digits_alone_is_no_port() -> None:
    assert port_of("10001") == 10001
    assert port_of("1" * 20) is None  # one random name in ten thousand is of this kind
    assert port_of("a1b2c") is None

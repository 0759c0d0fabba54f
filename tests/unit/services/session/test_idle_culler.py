"""Use is recorded and unused sessions end: the worker's measurement, heartbeats, user actions."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pydantic import ValidationError

from portal.core.admin.audit import AuditFilter
from portal.core.apps.access import AppState, gateway_name
from portal.core.apps.catalog import AppSpec
from portal.core.session.idle import Traffic
from portal.core.session.session import UNUSED, Cause, Session, State
from portal.errors import Conflict, NotFound, Unavailable
from portal.services.apps.proxy import ProxyRoutes
from tests.support.fakes import APPS, CATALOG, World
from tests.support.idle_sessions import idle_culler, pass_minutes, send_heartbeat, set_idle_rule
from tests.support.sessions import ADMIN, ALICE, BOB, REQUEST, make_ready, poll_slurm, session_now


def running(world: World) -> Session:
    """A running session of alice's."""
    return make_ready(world, world.launch(ALICE, REQUEST))


def type_(world: World, session: Session, requests: int = 0, sent: int = 10) -> None:
    """Use the terminal."""
    name = gateway_name("terminal", session.id)
    old = world.routes.sent.get(name, Traffic(0, 0))
    world.routes.sent[name] = Traffic(old.requests + requests, old.bytes + sent)


def last_used(world: World, session: Session) -> datetime:
    """The stored time of the last use."""
    found = session_now(world, session).last_used
    assert found is not None
    return found


def test_an_unused_session_is_ended_with_a_reason(world: World) -> None:
    set_idle_rule(world)
    session = running(world)
    world.apps.open_app(ALICE, session.id, "terminal")
    world.reports.note_app(session, "terminal", AppState.READY)
    link = world.apps.open_app(ALICE, session.id, "terminal")
    world.gate.enter(link.label, link.ticket)
    assert world.routes.map
    begun = world.clock.now
    pass_minutes(world, session, 59.5)
    assert session_now(world, session).state is State.RUNNING
    pass_minutes(world, session, 0.5)
    ended = session_now(world, session)
    assert (ended.state, ended.stopped_by) == (State.ENDING, UNUSED)
    assert world.slurm.jobs[0].state == "CANCELLED"
    assert world.routes.map == {}
    (line,) = world.services.administration.events(
        ADMIN, AuditFilter(action="session.idle"), 10, None
    )[0]
    assert (line.who, line.target) == ("Slipway", session.id)
    assert line.detail == f"{session.name} of alice: not used since {begun:%Y-%m-%d %H:%M} UTC"
    world.slurm.log = b"the last\nwords\n"
    poll_slurm(world)
    world.worker.clean()
    over = session_now(world, session)
    assert (over.state, over.cause) == (State.FINISHED, Cause.IDLE)
    assert over.end_text == (
        "Ended by Slipway: nobody had used it since 2026-11-20 12:00 UTC. Launch it again to go on."
    )
    assert over.end_log == "the last\nwords"


def test_without_a_rule_nothing_ends(world: World) -> None:
    session = running(world)
    pass_minutes(world, session, 300)
    assert session_now(world, session).state is State.RUNNING


def test_typing_keeps_a_session(world: World) -> None:
    set_idle_rule(world)
    session = running(world)
    pass_minutes(world, session, 50)
    type_(world, session)
    pass_minutes(world, session, 50)
    assert session_now(world, session).state is State.RUNNING
    pass_minutes(world, session, 11)
    assert session_now(world, session).state is State.ENDING


def test_opening_an_app_counts(world: World) -> None:
    session = running(world)
    pass_minutes(world, session, 50)
    world.apps.open_app(ALICE, session.id, "terminal")
    assert last_used(world, session) == world.clock.now


def test_a_computation_counts_without_an_open_window(world: World) -> None:
    set_idle_rule(world)
    session = running(world)
    pass_minutes(world, session, 1)
    quiet = last_used(world, session)
    world.clock.advance(seconds=10)
    send_heartbeat(world, session, 1.9)  # nine percent of a core
    assert last_used(world, session) == quiet
    world.clock.advance(seconds=10)
    send_heartbeat(world, session, 3.0)
    assert last_used(world, session) == world.clock.now
    pass_minutes(world, session, 2)
    send_heartbeat(world, session, 3.0, "jupyterlab")
    assert last_used(world, session) == world.clock.now


def test_administrators_define_the_computing_threshold(world: World) -> None:
    set_idle_rule(world, idle_cpu_percent=90)
    session = running(world)
    pass_minutes(world, session, 2)
    quiet = last_used(world, session)
    world.clock.advance(seconds=10)
    send_heartbeat(world, session, 9.0)
    assert last_used(world, session) == quiet


def test_use_is_stored_once_a_minute(world: World) -> None:
    session = running(world)
    idle_culler(world).cull()
    begun = last_used(world, session)
    for seconds in (20, 40, 60):
        world.clock.advance(seconds=20)
        type_(world, session)
        idle_culler(world).cull()
        assert (last_used(world, session) > begun) is (seconds == 60)


def test_a_restarted_worker_neither_invents_nor_forgets_use(world: World) -> None:
    session = running(world)
    type_(world, session, requests=500)
    idle_culler(world).cull()
    pass_minutes(world, session, 10)  # each poll is the first one of another worker
    quiet = last_used(world, session)
    assert world.clock.now - quiet > timedelta(minutes=9)
    type_(world, session)  # while there is no worker
    pass_minutes(world, session, 0.5)
    assert last_used(world, session) == world.clock.now


def test_without_measurements_no_session_is_idle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_idle_rule(world)
    session = running(world)
    pass_minutes(world, session, 50)

    def away() -> dict[str, Traffic]:
        raise Unavailable("the proxy is away")

    with monkeypatch.context() as patch:
        patch.setattr(world.routes, "traffic", away)
        for _ in range(20):
            world.clock.advance(minutes=1)
            send_heartbeat(world, session)
            with pytest.raises(Unavailable):
                idle_culler(world).cull()
    assert session_now(world, session).state is State.RUNNING
    pass_minutes(world, session, 59)
    assert session_now(world, session).state is State.RUNNING
    pass_minutes(world, session, 2)
    assert session_now(world, session).state is State.ENDING


def test_a_short_absence_of_haproxy_changes_nothing(world: World) -> None:
    set_idle_rule(world)
    session = running(world)
    type_(world, session, requests=9)
    pass_minutes(world, session, 30)
    world.routes.sent.clear()  # restarted: it counts from zero
    pass_minutes(world, session, 29.5)
    assert session_now(world, session).state is State.RUNNING
    pass_minutes(world, session, 1.5)
    assert session_now(world, session).state is State.ENDING


def test_a_silent_node_ends_nothing(world: World) -> None:
    set_idle_rule(world)
    session = running(world)
    for _ in range(200):
        world.clock.advance(minutes=1)
        idle_culler(world).cull()
    assert session_now(world, session).state is State.RUNNING
    send_heartbeat(world, session)
    assert last_used(world, session) == world.clock.now


def test_while_slurm_is_silent_nothing_ends(world: World) -> None:
    set_idle_rule(world)
    session = running(world)
    poll_slurm(world)
    world.slurm.down = True
    poll_slurm(world)
    pass_minutes(world, session, 70)
    assert session_now(world, session).state is State.RUNNING
    world.slurm.down = False
    poll_slurm(world)
    idle_culler(world).cull()
    assert session_now(world, session).state is State.ENDING


def test_waiting_sessions_are_never_idle(world: World) -> None:
    set_idle_rule(world)
    session = world.launch(ALICE, REQUEST)
    world.clock.advance(hours=9)
    idle_culler(world).cull()
    assert session_now(world, session).state is State.PENDING
    session = make_ready(world, session)
    assert session.last_used == world.clock.now


def test_a_new_rule_warns_first_and_the_current_rule_applies(world: World) -> None:
    session = running(world)
    pass_minutes(world, session, 200)
    set_idle_rule(world, 60, idle_warning=10)
    pass_minutes(world, session, 9.5)
    assert session_now(world, session).state is State.RUNNING
    set_idle_rule(world, None)
    pass_minutes(world, session, 10)
    assert session_now(world, session).state is State.RUNNING
    since = set_idle_rule(world, 60, idle_warning=10).idle_set
    world.clock.advance(seconds=1)
    assert set_idle_rule(world, 60, idle_warning=10, idle_cpu_percent=20).idle_set == since
    pass_minutes(world, session, 10)
    assert session_now(world, session).state is State.ENDING


def test_keeping_a_session(world: World) -> None:
    set_idle_rule(world)
    session = running(world)
    pass_minutes(world, session, 59.5)
    with pytest.raises(NotFound):
        world.services.lifecycle.keep_alive(BOB, session.id)
    assert world.services.lifecycle.keep_alive(ALICE, session.id).last_used == world.clock.now
    pass_minutes(world, session, 59.5)
    assert session_now(world, session).state is State.RUNNING
    world.sessions.stop(ALICE, session.id)
    with pytest.raises(Conflict):
        world.services.lifecycle.keep_alive(ALICE, session.id)
    waiting = world.launch(ALICE, REQUEST)
    assert world.services.lifecycle.keep_alive(ALICE, waiting.id).last_used is None
    kept = AuditFilter(action="session.keep")
    assert len(world.services.administration.events(ADMIN, kept, 10, None)[0]) == 1


def test_use_at_the_last_moment_keeps_the_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_idle_rule(world)
    session = running(world)
    pass_minutes(world, session, 59.5)
    world.clock.advance(seconds=30)
    send_heartbeat(world, session)
    real = world.status.slurm_status

    def clicked() -> object:
        world.services.lifecycle.keep_alive(ALICE, session.id)
        return real()

    monkeypatch.setattr(world.status, "slurm_status", clicked)
    idle_culler(world).cull()
    assert session_now(world, session).state is State.RUNNING


def test_a_crash_before_the_cancel_is_repaired(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_idle_rule(world)
    session = running(world)
    pass_minutes(world, session, 59.5)
    world.clock.advance(seconds=30)
    send_heartbeat(world, session)

    def crash(_session: Session) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world.services.idle_culler._teardown, "cancel_later", crash)
        with pytest.raises(KeyboardInterrupt):
            idle_culler(world).cull()
    world.clock.advance(seconds=10)
    poll_slurm(world)
    assert world.slurm.jobs[0].state == "CANCELLED"
    poll_slurm(world)
    assert session_now(world, session).cause is Cause.IDLE


def test_a_session_that_cannot_be_ended_does_not_delay_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_idle_rule(world)
    both = first, second = running(world), running(world)
    idle_culler(world).cull()
    while world.clock.now - last_used(world, first) < timedelta(minutes=60):
        world.clock.advance(seconds=60)
        for session in both:
            send_heartbeat(world, session)
        if world.clock.now - last_used(world, first) < timedelta(minutes=60):
            idle_culler(world).cull()

    def away(_session: str) -> None:
        raise Unavailable("the proxy is away")

    monkeypatch.setattr(world.services.idle_culler._teardown, "close_apps", away)
    idle_culler(world).cull()
    assert {session_now(world, one).state for one in (first, second)} == {State.ENDING}


def test_haproxy_gets_the_background_requests(world: World) -> None:
    paths = ("/api/contents", "PUT /lab/api/workspaces")
    lab = APPS["jupyterlab"].model_copy(update={"background": paths})
    catalog = CATALOG.model_copy(update={"apps": {**APPS, "jupyterlab": lab}})
    proxy = ProxyRoutes(
        world.store,
        world.access_store,
        world.routes,
        lambda: catalog,
        lambda _: {},
        world.proxy._hosts,
    )
    assert proxy.restore()
    assert world.routes.background == [
        "jupyterlab/GET/api/contents",
        "jupyterlab/PUT/lab/api/workspaces",
    ]


@pytest.mark.parametrize("wrong", ["api", "put /api", "GET  /api", "GET api", "GET /a /b", ""])
def test_a_wrong_request_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError):
        AppSpec(name="lab", title="Lab", script="run", background=(wrong,))

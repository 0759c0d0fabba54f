"""Revocation of tickets, cookies and routes is final, whatever fails in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from portal.core.admin.audit import AuditFilter
from portal.core.apps.access import AppOptions, AppState, public_key
from portal.core.auth.person import hash_secret
from portal.core.session.session import Session, State
from portal.core.session_job.runner_protocol import StartRequest
from portal.errors import Conflict, NotFound, StillOpen, Unauthorized
from portal.services.apps import proxy
from portal.services.apps.proxy import ProxyRoutes
from portal.store.access import OriginAssignment
from tests.support.app_access import enter_app, other_browser
from tests.support.fakes import FakeRoutes, World
from tests.support.sessions import ADMIN, ALICE, BOB, REQUEST, make_ready

PUBLIC = AppOptions(public=True)


@pytest.fixture
def session(world: World) -> Session:
    """A running session of alice's."""
    return make_ready(world, world.launch(ALICE, REQUEST))


def publish(world: World, session: Session) -> str:
    """Open the board to everybody; returns its key."""
    link = world.apps.open_app(ALICE, session.id, "board", PUBLIC)
    world.reports.note_app(session, "board", AppState.READY)
    key = public_key(link.label)
    assert key in world.routes.map
    return key


def board(world: World, session: Session) -> tuple[bool, bool]:
    """Whether the database has it as public, and as still open."""
    opened = next(app for app in world.apps.opened(session.id) if app.app == "board")
    return opened.public_since is not None, opened.still_open


@pytest.mark.parametrize("how", ["make_private", "close_app"])
def test_an_app_is_reported_open_until_it_is_closed(
    world: World, session: Session, how: str
) -> None:
    """M1: repeatedly, until the worker revokes it as soon as HAProxy responds."""
    key = publish(world, session)
    world.routes.unreachable = True
    for _ in range(2):
        with pytest.raises(StillOpen, match="still open"):
            getattr(world.apps, how)(ALICE, session.id, "board")
        assert board(world, session) == (False, True)
    assert key in world.routes.map
    with pytest.raises(StillOpen):
        world.proxy.retry_revocations()
    world.routes.unreachable = False
    world.proxy.retry_revocations()
    assert key not in world.routes.map
    assert board(world, session) == (False, False)


def test_the_route_is_revoked_whatever_the_database_says(world: World, session: Session) -> None:
    """M1: the database says "private" since a time when the map could not be changed."""
    key = publish(world, session)
    world.access_store.make_private(session.id, "board", world.clock())
    assert key in world.routes.map
    world.apps.make_private(ALICE, session.id, "board")
    assert key not in world.routes.map


def test_public_again_before_the_route_was_revoked(world: World, session: Session) -> None:
    """M1: the last request counts, in the database and for the worker."""
    key = publish(world, session)
    world.routes.unreachable = True
    with pytest.raises(StillOpen):
        world.apps.make_private(ALICE, session.id, "board")
    world.routes.unreachable = False
    world.apps.open_app(ALICE, session.id, "board", PUBLIC)
    world.proxy.retry_revocations()
    assert key in world.routes.map


def test_map_and_database_are_synced(world: World, session: Session) -> None:
    """M1: a crash between the two, in either direction."""
    key = publish(world, session)
    target = world.routes.map[key]
    world.routes.map.clear()
    # Ports of no app: those of apps are chosen at random.
    world.routes.map["9999.public"] = target
    world.routes.map["9998." + "0" * 64] = target
    assert world.proxy.check_routes() == 3
    assert world.routes.map == {key: target}
    assert world.proxy.check_routes() == 0
    world.routes.map[key] = "10.0.0.9@1@other"
    assert world.proxy.check_routes() == 1
    assert world.routes.map == {key: target}


def test_an_ended_session_leaves_nothing(world: World, session: Session) -> None:
    """M1: the portal was killed after the session's end was stored, before its apps were closed."""
    publish(world, session)
    link = world.apps.open_app(ALICE, session.id, "terminal")
    world.force(session.id, state=State.FINISHED)
    world.apps.close_abandoned()
    assert world.routes.map == {}
    assert world.apps.opened(session.id) == []
    with pytest.raises(Unauthorized):
        world.gate.enter(link.label, link.ticket)


def test_ending_does_not_wait_for_haproxy(world: World, session: Session) -> None:
    """M1: the job is cancelled in any case, and the route is revoked later."""
    publish(world, session)
    world.routes.unreachable = True
    world.sessions.stop(ALICE, session.id)
    assert world.apps.opened(session.id) == []
    world.routes.unreachable = False
    world.proxy.retry_revocations()
    assert world.routes.map == {}


def test_a_label_is_not_reassigned_while_a_route_to_it_is_open(
    world: World, session: Session
) -> None:
    """M1, C1: otherwise the next user would get the last one's visitors."""
    label = publish(world, session).partition(".")[0]
    world.routes.unreachable = True
    with pytest.raises(StillOpen):
        world.apps.close_app(ALICE, session.id, "board")
    world.sessions.stop(ALICE, session.id)
    world.routes.unreachable = False
    other = make_ready(world, world.launch(ALICE, REQUEST))
    options = AppOptions(port=int(label))
    assert world.apps.open_app(ALICE, other.id, "terminal", options).label != label
    world.proxy.retry_revocations()
    world.clock.advance(seconds=11)
    assert world.apps.open_app(ALICE, other.id, "terminal", options).label == label


def test_a_ticket_is_valid_for_its_owner_and_app_only(world: World, session: Session) -> None:
    """C1: the port belongs to another app by now, and to another user."""
    first = world.apps.open_app(ALICE, session.id, "terminal", AppOptions(port=10005))
    world.clock.advance(seconds=11)
    cookie = world.gate.enter(first.label, first.ticket).cookie or ""
    second = world.apps.open_app(ALICE, session.id, "terminal")
    world.apps.open_app(ALICE, session.id, "terminal", AppOptions(port=10006))
    now = world.apps.open_app(ALICE, session.id, "any", AppOptions(port=10005))
    assert now.label == first.label
    with pytest.raises(Unauthorized):
        world.gate.enter(second.label, second.ticket)
    with pytest.raises(NotFound):
        world.gate.status(now.label, [cookie])
    assert world.access_store.at_origin(now.label, [hash_secret(cookie)]).grant is None  # type: ignore[union-attr]


def test_tickets_and_browsers_are_limited(world: World, session: Session) -> None:
    """L10: the oldest are dropped, from HAProxy's map as well; a click has no line of its own."""
    keys = []
    for _ in range(20):
        keys.append(enter_app(world, ALICE, session.id, "terminal"))
        world.clock.advance(seconds=1)
    world.reports.note_app(session, "terminal", AppState.READY)
    assert sorted(world.routes.map) == sorted(keys[-16:])
    enter_app(world, ALICE, session.id, "terminal")
    assert keys[4] not in world.routes.map
    links = []
    for _ in range(10):
        links.append(world.apps.open_app(ALICE, session.id, "terminal"))
        world.clock.advance(seconds=0.1)
    with pytest.raises(Unauthorized):
        world.gate.enter(links[0].label, links[0].ticket)
    world.gate.enter(links[-1].label, links[-1].ticket)
    entries, _ = world.services.administration.events(ADMIN, AuditFilter(), 500, None)
    before = len(entries)
    for _ in range(30):
        world.apps.open_app(ALICE, session.id, "terminal")
    after, _ = world.services.administration.events(ADMIN, AuditFilter(), 500, None)
    assert len(after) == before


def test_one_of_many_concurrent_moves_wins(world: World, session: Session) -> None:
    """E17: each response has a valid ticket, and the app's current port."""
    first = world.apps.open_app(ALICE, session.id, "terminal")
    ports = [int(first.label), *(port for port in range(10010, 10016) if str(port) != first.label)]

    def move(port: int) -> tuple[str, str, str]:
        link = world.apps.open_app(ALICE, session.id, "terminal", AppOptions(port=port))
        return link.label, link.ticket, link.notice

    with ThreadPoolExecutor(8) as pool:
        moved = list(pool.map(move, ports))
    assert len({label for label, _, _ in moved}) == 1
    for port, (label, ticket, told) in zip(ports, moved, strict=True):
        assert bool(told) is (label != str(port)), told
        world.gate.enter(label, ticket)


def test_one_of_two_concurrent_answers_wins(world: World, session: Session) -> None:
    """E17: the other one is told that the running app is not theirs."""
    world.apps.open_app(ALICE, session.id, "any", AppOptions(asked="first"))
    opened = next(app for app in world.apps.opened(session.id) if app.app == "any")
    assert world.access_store.save_answer(opened, "second")
    assert not world.access_store.save_answer(opened, "third")
    assert next(a for a in world.apps.opened(session.id) if a.app == "any").asked == "second"


def test_the_worker_never_starts_an_app_without_its_answer(
    world: World, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker polls at the moment when the app has its origin."""
    assign_origin = world.access_store.assign_origin

    def worker_polls(*args: Any) -> OriginAssignment:
        assigned = assign_origin(*args)
        world.services.app_starter.retry_pending(session)
        return assigned

    monkeypatch.setattr(world.access_store, "assign_origin", worker_polls)
    world.apps.open_app(ALICE, session.id, "any", AppOptions(asked="echo"))
    assert [request["asked"] for _, request in world.runners.requests] == ["echo"]


def test_an_app_started_with_an_earlier_answer_starts_again(
    world: World, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner sends another answer while the worker's request with the first one is in flight."""
    world.runners.unreachable = True
    world.apps.open_app(ALICE, session.id, "any", AppOptions(asked="first"))
    world.runners.unreachable = False
    start_app = world.runners.start_app

    def answer_changes_meanwhile(session: Session, request: StartRequest) -> None:
        start_app(session, request)
        opened = next(app for app in world.apps.opened(session.id) if app.app == "any")
        world.access_store.save_answer(opened, "second")

    monkeypatch.setattr(world.runners, "start_app", answer_changes_meanwhile)
    world.services.app_starter.retry_pending(session)
    assert world.runners.stopped == ["any"]
    monkeypatch.undo()
    world.services.app_starter.retry_pending(session)
    assert [request["asked"] for _, request in world.runners.requests] == ["first", "second"]
    assert next(iter(world.apps.opened(session.id))).state is AppState.STARTING


def test_an_ended_session_opens_no_app(world: World, session: Session) -> None:
    """C1: a click that began before the end and reaches the database after it."""
    world.sessions.stop(ALICE, session.id)
    with pytest.raises(Conflict, match="over"):
        world.apps._origins.assign(session, world.apps.offered(session)[0], AppOptions(), None)
    assert world.apps.opened(session.id) == []


def test_a_sessions_report_about_its_image_applies_to_that_session_only(world: World) -> None:
    """M4: bob's token reports that the image has one app only; an administrator's is trusted."""
    his = world.launch(BOB, REQUEST)
    assert world.reports.note_image(his, ["board", "no-such-app", "board"]) == ("board",)
    assert world.access_store.image_apps() == {}
    admins = world.launch(ADMIN, REQUEST)
    assert world.reports.note_image(admins, ["terminal"]) == ("terminal",)
    assert world.access_store.image_apps() == {("python", "3.13"): ("terminal",)}


def test_the_same_image_finds_its_port_again(world: World) -> None:
    """The browser's cache is valid in the next session."""
    labels = []
    for _ in range(3):
        session = make_ready(world, world.launch(ALICE, REQUEST))
        labels.append(
            [world.apps.open_app(ALICE, session.id, app).label for app in ("terminal", "any")]
        )
        world.sessions.stop(ALICE, session.id)
        other = make_ready(world, world.launch(BOB, REQUEST))
        his = world.apps.open_app(BOB, other.id, "terminal").label
        assert his not in {label for pair in labels for label in pair}
    assert len({terminal for terminal, _ in labels}) == 1


def test_logging_out_revokes_tickets_too(world: World, session: Session) -> None:
    """L10: those issued to this login, and no others."""
    desk, phone = other_browser(world), other_browser(world)
    mine = world.apps.open_app(desk, session.id, "terminal")
    other = world.apps.open_app(phone, session.id, "terminal")
    world.services.logins.log_out(desk)
    with pytest.raises(Unauthorized):
        world.gate.enter(mine.label, mine.ticket)
    world.gate.enter(other.label, other.ticket)


class Counted(FakeRoutes):
    """Routes that keep what was added together; others act whenever the lock is free again."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.meanwhile = meanwhile
        self.batches: list[list[str]] = []

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Nobody else changes it."""
        yield
        if self.batches:
            self.meanwhile()

    def add_all(self, routes: Mapping[str, str]) -> None:
        """Add routes."""
        self.batches.append(list(routes))
        super().add_all(routes)


def refill(world: World, routes: Counted, monkeypatch: pytest.MonkeyPatch) -> ProxyRoutes:
    """The proxy's part with these routes, two at once."""
    monkeypatch.setattr(proxy, "_AT_ONCE", 2)
    monkeypatch.setattr(world.proxy, "_routes", routes)
    return world.proxy


def test_a_key_that_is_revoked_while_routes_are_restored_does_not_come_back(
    world: World, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first of several parts, in all of which its app was valid at the beginning."""
    keys = [enter_app(world, other_browser(world), session.id, "terminal") for _ in range(5)]
    world.reports.note_app(session, "terminal", AppState.READY)
    assert sorted(world.routes.map) == sorted(keys)
    routes = Counted(lambda: world.apps.close_app(ALICE, session.id, "terminal"))
    restored = refill(world, routes, monkeypatch)
    assert restored.restore()
    assert [len(batch) for batch in routes.batches] == [2, 0, 0]
    assert routes.map == {}
    assert not routes.is_lost()
    assert restored.check_routes() == 0


def test_a_route_that_is_added_while_others_are_removed_stays(
    world: World, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its app was not ready when the map was compared, and is by the time of the removal."""
    key = publish(world, session)
    world.reports.note_app(session, "board", AppState.STARTING)
    world.routes.map[key] = "10.0.0.9@1@other"
    world.routes.map["9998.public"] = "10.0.0.9@1@other"
    routes, remove = world.routes, world.routes.remove

    class Lock:
        """Whoever waits for the map has it as soon as it is free."""

        held = False

        def __enter__(self) -> None:
            self.held = True

        def __exit__(self, *_: object) -> None:
            self.held = False

    lock = Lock()

    def become_ready(*keys: str) -> None:
        if not lock.held:
            monkeypatch.setattr(routes, "remove", remove)
            world.reports.note_app(session, "board", AppState.READY)
        remove(*keys)

    monkeypatch.setattr(routes, "exclusively", lambda: lock)
    monkeypatch.setattr(routes, "remove", become_ready)
    world.proxy.check_routes()
    world.reports.note_app(session, "board", AppState.READY)
    assert list(routes.map) == [key]


def test_a_restart_while_routes_are_restored_is_noticed(
    world: World, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HAProxy has lost those of the first part again."""
    keys = [enter_app(world, other_browser(world), session.id, "terminal") for _ in range(5)]
    world.reports.note_app(session, "terminal", AppState.READY)
    routes = Counted()

    def restart() -> None:
        routes.map.clear()
        routes.restarts += 1
        routes.meanwhile = lambda: None

    routes.meanwhile = restart
    restored = refill(world, routes, monkeypatch)
    assert restored.restore()
    assert len(routes.map) == 3
    assert routes.is_lost()
    assert restored.restore()
    assert sorted(routes.map) == sorted(keys)
    assert not routes.is_lost()

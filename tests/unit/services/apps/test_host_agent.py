"""Two portal hosts over one database: what is shut at one is shut at the other."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlmodel import Session as Database

from portal.config import Settings
from portal.core.apps.access import AppOptions, AppState, public_key
from portal.core.hosts import OPEN_SECONDS, SHUT_SECONDS, View
from portal.core.session.idle import Traffic
from portal.core.session.session import Session
from portal.errors import StillOpen, Unavailable
from portal.services.apps import hosts as waiting
from portal.services.apps.host_agent import HostAgent, HostTaken
from portal.services.assembly import Services
from portal.services.owner_queue import run_now
from portal.store.hosts import HostStore
from portal.store.tables import HostRow
from tests.support.fakes import FakeRoutes, World, make_world
from tests.support.sessions import ALICE, REQUEST, make_ready


@dataclass
class Host:
    """A portal host: its HAProxy, its agent, and the time that its agent sees."""

    services: Services
    routes: FakeRoutes
    agent: HostAgent
    store: HostStore
    passed: float = 0.0

    def follow(self) -> bool:
        """Look at the database; whether the apps are open afterwards."""
        self.agent.follow()
        return self.agent.is_open()


def settings(folder: Path, name: str) -> Settings:
    (folder / "secret_key").write_text("0" * 64)
    return Settings.model_validate(
        {
            "state": {
                "directory": str(folder), "run": str(folder), "hosts": "several", "host_name": name
            },
            "slurm": {"admins": ["admin"]},
        }
    )  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(settings(tmp_path, "a"))


def make_host(world: World, folder: Path, name: str) -> Host:
    routes, store = FakeRoutes(), HostStore(world.engine)
    systems = replace(world.systems, routes=routes, machine=f"machine of {name}")
    services = Services(settings(folder, name), systems, run_now)
    host = Host(services, routes, services.host_agent, store)  # type: ignore[arg-type]
    assert host.agent is not None
    host.agent._clock = lambda: host.passed
    return host


@pytest.fixture
def a(world: World, tmp_path: Path) -> Host:
    return make_host(world, tmp_path, "a")


@pytest.fixture
def b(world: World, tmp_path: Path) -> Host:
    return make_host(world, tmp_path, "b")


@pytest.fixture
def key(world: World, a: Host, b: Host) -> str:
    """The key of alice's public board, which both hosts serve."""
    session = make_ready(world, world.launch(ALICE, REQUEST))
    link = a.services.apps.open_app(ALICE, session.id, "board", AppOptions(public=True))
    world.reports.note_app(session, "board", AppState.READY)
    assert a.follow()
    assert b.follow()
    found = public_key(link.label)
    assert found in a.routes.map
    assert found in b.routes.map
    return found


def only_session(world: World) -> Session:
    return world.store.live()[0]


def age(world: World, host: str, seconds: float) -> None:
    with Database(world.engine) as db:
        row = db.get_one(HostRow, host)
        row.seen -= timedelta(seconds=seconds)
        db.add(row)
        db.commit()


def close_in_background(host: Host, world: World) -> tuple[threading.Thread, list[str]]:
    """Close the board at one host; how that ended."""
    said: list[str] = []
    session = only_session(world).id

    def close() -> None:
        try:
            host.services.apps.close_app(ALICE, session, "board")
            said.append("closed")
        except StillOpen:
            said.append("still open")

    thread = threading.Thread(target=close)
    thread.start()
    return thread, said


def test_closing_succeeds_once_the_other_host_has_closed(
    world: World, a: Host, b: Host, key: str
) -> None:
    thread, said = close_in_background(a, world)
    thread.join(0.5)
    assert said == []
    assert key not in a.routes.map
    assert key in b.routes.map
    b.follow()
    assert key not in b.routes.map
    thread.join(5)
    assert said == ["closed"]
    assert world.access_store.pending_removals() == []


def test_a_host_that_is_shut_off_is_not_waited_for(
    world: World, a: Host, b: Host, key: str
) -> None:
    b.passed += OPEN_SECONDS
    assert not b.agent.is_open()
    age(world, "b", SHUT_SECONDS)
    a.services.apps.close_app(ALICE, only_session(world).id, "board")
    assert world.access_store.pending_removals() == []
    # Nobody keeps the revocation for it: it has to compare its whole map before it opens.
    b.passed += SHUT_SECONDS
    assert b.follow()
    assert key not in b.routes.map


def test_a_machine_that_stood_still_compares_everything(
    world: World, a: Host, b: Host, key: str
) -> None:
    """By its own clock no time has passed, as after a snapshot of a virtual machine."""
    age(world, "b", SHUT_SECONDS)
    a.services.apps.close_app(ALICE, only_session(world).id, "board")
    assert key in b.routes.map
    assert b.follow()
    assert key not in b.routes.map


def test_what_is_revoked_while_a_host_comes_back(
    world: World, a: Host, b: Host, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its comparison has begun with what was true before: it is told nevertheless."""
    b.passed += SHUT_SECONDS
    age(world, "b", SHUT_SECONDS)
    fill = b.services.proxy.check_routes
    threads = []

    def compare() -> int:
        done = fill()
        threads.append(close_in_background(a, world))
        threads[0][0].join(0.5)
        assert threads[0][1] == []
        return done

    monkeypatch.setattr(b.services.proxy, "check_routes", compare)
    b.follow()
    assert key not in b.routes.map
    threads[0][0].join(5)
    assert threads[0][1] == ["closed"]


@pytest.mark.parametrize("fails", ["remove", "is_lost"])
def test_a_host_whose_haproxy_does_not_answer_is_shut_off(
    world: World, a: Host, b: Host, key: str, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_keys: str) -> bool:
        raise Unavailable("the proxy does not answer")

    world.access_store.close_app(only_session(world).id, "board", world.clock())
    with monkeypatch.context() as patch:
        patch.setattr(b.routes, fails, away)
        before = b.store.view("b").silent
        assert before is not None
        b.passed += OPEN_SECONDS
        with pytest.raises(Unavailable):
            b.agent.follow()
        assert not b.agent.is_open()
    assert b.follow()
    assert key not in b.routes.map


def test_waiting_ends_with_the_truth(
    world: World, a: Host, b: Host, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "WAIT_SECONDS", 0.2)
    with pytest.raises(StillOpen):
        a.services.apps.close_app(ALICE, only_session(world).id, "board")
    assert key in b.routes.map
    assert world.access_store.pending_removals() != []
    b.follow()
    a.services.apps.close_app(ALICE, only_session(world).id, "board")


def test_a_slow_look_opens_nothing(world: World, b: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a look finds was true when it began."""
    look = HostStore.view

    def slow(store: HostStore, host: str) -> View:
        found = look(store, host)
        b.passed += OPEN_SECONDS
        return found

    with monkeypatch.context() as patch:
        patch.setattr(HostStore, "view", slow)
        assert not b.follow()
    assert b.follow()


def test_a_host_of_the_same_name_is_refused(world: World, b: Host, tmp_path: Path) -> None:
    b.follow()
    other = make_host(world, tmp_path, "b")
    other.agent._machine = "another machine"
    with pytest.raises(HostTaken, match=r"state\.host_name"):
        other.agent.follow()
    assert not other.agent.is_open()
    age(world, "b", SHUT_SECONDS)
    assert other.follow()


def test_it_is_refused_also_in_the_moment_of_the_others_report(
    world: World, b: Host, tmp_path: Path
) -> None:
    """Zero seconds of silence, also where the database's clock has been put back."""
    b.follow()
    age(world, "b", -5.0)
    other = make_host(world, tmp_path, "b")
    other.agent._machine = "another machine"
    with pytest.raises(HostTaken):
        other.agent.follow()


def test_traffic_of_all_hosts_counts_as_use(world: World, a: Host, b: Host) -> None:
    a.follow()
    b.follow()
    b.routes.sent = {"lab.x.slipway": Traffic(2, 300)}
    b.agent.note_traffic()
    a.routes.sent = {"lab.x.slipway": Traffic(1, 50), "other": Traffic(1, 1)}
    found = a.services.proxy.traffic()
    assert found == {"lab.x.slipway": Traffic(3, 350), "other": Traffic(1, 1)}


def test_routes_that_are_opened_at_one_host_reach_the_other(
    world: World, a: Host, b: Host, key: str
) -> None:
    b.routes.map.clear()
    b.agent.compare()
    assert key in b.routes.map


def test_one_host_waits_for_nobody(tmp_path: Path) -> None:
    """On SQLite alone nothing is different: no host is registered or waited for."""
    alone = make_world(Settings.model_validate({"state": {"directory": str(tmp_path)}}))
    assert alone.services.host_agent is None
    HostStore(alone.engine).report("other", "machine")
    session = make_ready(alone, alone.launch(ALICE, REQUEST))
    alone.apps.open_app(ALICE, session.id, "board", AppOptions(public=True))
    alone.apps.close_app(ALICE, session.id, "board")
    assert alone.access_store.pending_removals() == []

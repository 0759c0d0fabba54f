"""File servers are started when they are needed, once, and their routes follow logins."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from portal.core.auth.logins import BROWSER
from portal.core.auth.person import Person, hash_secret
from portal.core.files.server import (
    READ,
    WRITE,
    FileReply,
    FileRequest,
    FileServer,
    NoReply,
    StartOrder,
    route_key,
)
from portal.errors import NotFound, Starting, Unavailable
from portal.services.files.servers import FileServers
from portal.services.files.starts import Starts
from portal.services.owner_queue import run_now
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import make_settings

LIST = FileRequest("GET", "/v1/list/home")
SECRET = hash_secret("a cookie")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(make_settings(tmp_path))


@pytest.fixture
def alice(world: World) -> Person:
    """Alice, logged in with a browser."""
    _, login = world.services.logins.open_browser("alice")
    return world.services.logins.person(login)


def test_a_server_is_started_once_and_answers(world: World, alice: Person) -> None:
    servers = world.services.file_servers
    for _ in range(2):
        assert servers.ask(alice, LIST).data["total"] == 1
    assert world.file_servers.starts == ["alice"]


def test_a_server_that_has_ended_is_started_again(world: World, alice: Person) -> None:
    servers = world.services.file_servers
    servers.admit(alice, SECRET, WRITE)
    before = world.routes.map[route_key(SECRET)]
    world.file_servers.kill("alice")
    assert servers.ask(alice, LIST).status == 200
    assert world.file_servers.starts == ["alice", "alice"]
    assert world.routes.map[route_key(SECRET)] != before, "HAProxy knows the new one's port"


def test_a_start_that_fails_can_be_tried_again(world: World, alice: Person) -> None:
    world.file_servers.away = True
    with pytest.raises(Unavailable, match="login node"):
        world.services.file_servers.ensure(alice)
    world.file_servers.away = False
    with pytest.raises(Unavailable, match="login node"):  # remembered
        world.services.file_servers.ensure(alice)
    world.clock.advance(seconds=5)
    world.services.file_servers.ensure(alice)


def test_a_failed_start_is_remembered_for_longer_if_it_took_long(
    world: World, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that fails after 7 seconds is not asked again at once."""
    starts = []

    def slow(owner: str, _order: StartOrder) -> tuple[str, int]:
        starts.append(owner)
        world.clock.advance(seconds=7)
        raise Unavailable("Your shell's start-up files take too long.")

    monkeypatch.setattr(world.file_servers, "start", slow)
    for _ in range(40):
        with pytest.raises(Unavailable, match="start-up files") as caught:
            world.services.file_servers.ask(alice, LIST)
    assert starts == ["alice"]
    assert caught.value.retry_seconds == 28
    world.clock.advance(seconds=28)
    with pytest.raises(Unavailable, match="start-up files"):
        world.services.file_servers.ask(alice, LIST)
    assert starts == ["alice", "alice"]


def test_a_server_that_another_process_has_started_is_asked(
    world: World, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.file_servers.away = True
    with pytest.raises(Unavailable):
        world.services.file_servers.ensure(alice)
    world.file_servers.away = False
    other = make_servers(world)
    other.ensure(alice)
    world.services.file_servers.ensure(alice)
    assert world.file_servers.starts == ["alice"]


def make_servers(world: World) -> FileServers:
    """The service of another process."""
    systems, services = world.systems, world.services
    return FileServers(
        store=systems.stores.files,
        host=systems.file_servers,
        certificates=systems.certificates,
        routes=systems.routes,
        make_order=systems.file_server_order,
        upload_life=services.file_servers._upload_life,
        clock=world.clock,
        starts=Starts(run_now),
    )


def test_nobody_waits_for_a_start_by_another_request(world: World, alice: Person) -> None:
    store, now = world.systems.stores.files, world.clock.now
    assert store.claim_start("alice", "", now, now.replace(minute=1))
    begun = time.monotonic()
    for _ in range(40):
        with pytest.raises(Starting, match="being started"):
            world.services.file_servers.ask(alice, LIST)
    assert time.monotonic() - begun < 2
    assert world.file_servers.starts == []


@pytest.mark.parametrize("why", list(NoReply))
def test_a_silent_server_is_replaced_only_if_it_has_ended(
    world: World, alice: Person, monkeypatch: pytest.MonkeyPatch, why: NoReply
) -> None:
    """On a busy host it may be hers, with work in progress."""
    servers, host, orders = world.services.file_servers, world.file_servers, []
    servers.ensure(alice)
    first = world.systems.stores.files.server("alice")
    assert first is not None
    ask, start = host.ask, host.start

    def asked(server: FileServer, request: FileRequest) -> FileReply | NoReply:
        return why if server.id == first.id else ask(server, request)

    def started(owner: str, order: StartOrder) -> tuple[str, int]:
        orders.append(order)
        return start(owner, order)

    monkeypatch.setattr(host, "ask", asked)
    monkeypatch.setattr(host, "start", started)
    servers.ensure(alice)
    assert [order.unless for order in orders] == [first.id if why is NoReply.SILENT else ""]


def test_a_user_has_so_many_routes_at_most(
    world: World, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest one ends; whoever uses it is admitted again."""
    monkeypatch.setattr("portal.services.files.servers.MOST_GRANTS", 3)
    servers, hashes = world.services.file_servers, [hash_secret(str(n)) for n in range(5)]
    for each in hashes:
        world.clock.advance(seconds=1)
        servers.admit(alice, each, WRITE)
    assert set(world.routes.map) == {route_key(each) for each in hashes[2:]}
    assert set(servers.expected_routes()) == set(world.routes.map)
    servers.admit(alice, hashes[2], WRITE)
    assert len(world.routes.map) == 3


def test_two_processes_start_one_server(world: World, alice: Person) -> None:
    """The second one leaves it to the first, which claims the start."""
    store, now = world.systems.stores.files, world.clock.now
    assert store.claim_start("alice", "", now, now.replace(minute=1))
    assert not store.claim_start("alice", "", now, now.replace(minute=1))
    assert store.claim_start("alice", "", now.replace(minute=2), now.replace(minute=3))


def test_a_route_ends_with_the_login(world: World, alice: Person) -> None:
    servers, logins = world.services.file_servers, world.services.logins
    servers.admit(alice, SECRET, READ)
    key = route_key(SECRET)
    assert world.routes.map[key].rpartition("@")[2].startswith("read.")
    assert servers.is_admitted(alice, SECRET)
    logins.revoke_all("alice", "alice", (BROWSER,))
    assert key not in world.routes.map
    assert servers.expected_routes() == {}
    assert not servers.is_admitted(alice, SECRET)
    with pytest.raises(NotFound):
        servers.restart(SECRET)
    with pytest.raises(NotFound):
        servers.admit(alice, SECRET, READ)
    assert key not in world.routes.map


def test_a_route_ends_when_the_login_expires(world: World, alice: Person) -> None:
    servers = world.services.file_servers
    servers.admit(alice, SECRET, WRITE)
    world.clock.advance(days=30)
    assert servers.expected_routes() == {}
    servers.expire()
    assert world.systems.stores.files.grant(SECRET) is None
    world.services.proxy.check_routes()
    assert route_key(SECRET) not in world.routes.map


def test_a_cookie_of_another_user_is_not_admitted(world: World, alice: Person) -> None:
    servers = world.services.file_servers
    servers.admit(alice, SECRET, WRITE)
    _, login = world.services.logins.open_browser("bob")
    bob = world.services.logins.person(login)
    assert not servers.is_admitted(bob, SECRET)


def test_uploads_are_cleaned_up_once_after_their_time(world: World, alice: Person) -> None:
    servers, host = world.services.file_servers, world.file_servers
    servers.ensure(alice)
    servers.clean_up()
    assert host.cleaned == [], "they may still be continued"
    world.clock.advance(hours=49)
    host.away = True
    servers.clean_up()
    host.away, host.unfinished = False, 1
    servers.clean_up()
    assert host.cleaned == ["alice"]
    host.unfinished = 0
    servers.clean_up()
    servers.clean_up()
    assert host.cleaned == ["alice", "alice"], "once nothing is left, no more"
    host.kill("alice")
    servers.ensure(alice)
    world.clock.advance(hours=49)
    servers.clean_up()
    assert host.cleaned == ["alice"] * 3

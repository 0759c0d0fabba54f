"""Long streams through a real HAProxy: cut with their key, counted, alive after a reload."""

from __future__ import annotations

import http.client
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from portal.adapters.haproxy.runtime_api import Haproxy
from portal.core.apps.access import public_key, ssh_key
from portal.core.auth.person import hash_secret
from tests.unit.web.front import SESSION, Front, Stream, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

NAME = f"jupyterlab.{SESSION}.slipway"


@pytest.fixture(scope="module", params=["ports", "subdomains"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One HAProxy for all tests here, in each mode."""
    with running_front(tmp_path_factory.mktemp("front"), request.param) as running:
        yield running


@pytest.fixture
def keys(front: Front) -> Iterator[list[str]]:
    """The keys of the routes: two browsers', the public one, and SSH's."""
    other = f"{front.label}.{hash_secret('other')}"
    first_ssh = front.web.ssh_ports[0]
    found = [front.key, other, public_key(front.label), ssh_key(str(first_ssh))]
    for key in found:
        front.routes.add(key, front.target)
    yield found
    front.routes.remove(*found)


def open_all(front: Front) -> list[Stream]:
    """Open a stream by each of the keys, in their order."""
    other = front.web.app_cookie(front.label) + "=other"
    ssh = front.web.ssh_ports[0]
    return [
        Stream(front),
        Stream(front, cookie=other),
        Stream(front, cookie=""),
        Stream(front, ssh),
    ]


def test_removing_a_key_cuts_only_its_streams(front: Front, keys: list[str]) -> None:
    streams = open_all(front)
    assert all(stream.opened for stream in streams)
    alive = list(streams)
    for key, stream in zip(keys, streams, strict=True):
        front.routes.remove(key)
        alive.remove(stream)
        assert stream.ended(), key
        assert all(other.echoes() for other in alive)


def test_the_map_can_be_read_with_open_streams(front: Front, keys: list[str]) -> None:
    """M1: a removed entry does not mean that all its connections have been closed."""
    assert front.routes.entries() == dict.fromkeys(keys, front.target)
    with closing(Stream(front)) as stream:
        assert stream.opened
        run = front.ca.parent
        Haproxy(str(run)).ask(f"del map {run}/routes.map {front.key}")
        left = front.routes.entries()
        assert left == dict.fromkeys(keys[1:], front.target) | {front.key: ""}
        front.routes.remove(front.key)
        assert stream.ended()


def test_streams_survive_a_reload_and_can_still_be_cut(front: Front, keys: list[str]) -> None:
    streams = open_all(front)
    Haproxy(str(front.ca.parent)).reload()
    with closing(Stream(front)) as newcomer:
        assert newcomer.opened
        assert all(stream.echoes() for stream in streams)
        front.routes.remove(*keys)
        assert all(stream.ended() for stream in [*streams, newcomer])


def test_keys_are_removed_while_haproxy_is_reloaded(front: Front, keys: list[str]) -> None:
    with closing(Stream(front)) as inside:
        for _ in range(3):
            front.process.send_signal(signal.SIGUSR2)
            deadline = time.monotonic() + 1
            while time.monotonic() < deadline:
                front.routes.remove(keys[1])
                front.routes.traffic()
        assert inside.echoes()
        front.routes.remove(front.key)
        assert inside.ended()


def test_many_keys_are_removed_at_once(front: Front, keys: list[str]) -> None:
    many = [f"{front.label}.{hash_secret(str(number))}" for number in range(300)]
    for key in many:
        front.routes.add(key, front.target)
    cookie = f"{front.web.app_cookie(front.label)}=299"
    with closing(Stream(front, cookie=cookie)) as last, closing(Stream(front)) as other:
        front.routes.remove(*many)
        assert last.ended()
        assert other.echoes()


def test_a_route_added_twice_concurrently_is_removed_as_well(front: Front, keys: list[str]) -> None:
    haproxy = Haproxy(str(front.ca.parent))
    for _ in range(2):
        haproxy.ask(f"add map {front.ca.parent}/routes.map {front.key} {front.target}")
    front.routes.remove(front.key, public_key(front.label))
    assert front.app().seen["who"] == "portal"


def test_an_ssh_port_without_a_session_is_closed_at_once(front: Front, keys: list[str]) -> None:
    assert not Stream(front, front.web.ssh_ports[0] + 1).opened
    front.routes.remove(*keys)
    assert not Stream(front, front.web.ssh_ports[0]).opened


def test_a_connection_that_the_app_closes_is_no_failure(front: Front, keys: list[str]) -> None:
    """It may close an idle one just as a request arrives; only what changes nothing is repeated."""
    front.gateway.closes = 1
    assert front.app("/again").status == 200
    front.gateway.closes = 2
    with suppress(http.client.RemoteDisconnected):
        assert front.app("/once", "POST").status == 502
    assert front.gateway.closes == 1
    front.gateway.closes = 0


def test_use_is_counted_without_background_requests(front: Front, keys: list[str]) -> None:
    front.routes.set_background_requests(
        ["jupyterlab/GET/api/kernels", "jupyterlab/GET/static/", "jupyterlab/PUT/workspace"]
    )

    def requests() -> int:
        seen = front.routes.traffic().get(NAME)
        return seen.requests if seen else 0

    before = requests()
    for path in ("/api/kernels?1", "/api/kernels/x", "/static/a.js", "/.slipway/status"):
        front.app(path)
    front.app("/workspace/1", "PUT", origin=front.origin)
    assert requests() == before
    front.app("/lab")
    front.app("/api/kernels", "POST", origin=front.origin)
    front.app("/x/api/kernels")
    assert requests() == before + 3


def test_bytes_of_open_streams_are_counted_while_they_flow(front: Front, keys: list[str]) -> None:
    for port in (None, front.web.ssh_ports[0]):
        with closing(Stream(front, port)) as stream:
            before = front.routes.traffic()[NAME].bytes
            deadline = time.monotonic() + 20
            while front.routes.traffic()[NAME].bytes < before + 1000:
                assert time.monotonic() < deadline, "never counted"
                assert stream.echoes(b"x" * 200)
                time.sleep(0.2)


def test_a_background_path_cannot_carry_a_command(front: Front) -> None:
    with pytest.raises(ValueError, match="misread"):
        front.routes.set_background_requests(["jupyterlab/a;shutdown"])

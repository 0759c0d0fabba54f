"""Several portal hosts: HAProxy closes the apps of one that does not follow the database."""

from __future__ import annotations

import shutil
import socket
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from portal.adapters.haproxy.agent import AgentSocket, follows, machine_id
from portal.adapters.haproxy.runtime_api import Haproxy
from portal.cli.apply.command import _reload_proxy
from portal.core.apps.access import ssh_key
from portal.core.hosts import CHECK_SECONDS, CHECKS, OPEN_SECONDS, SHUT_SECONDS
from tests.unit.web.front import Front, Stream, make_settings, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")


class Agent:
    """An agent whose answer the test decides."""

    def __init__(self, folder: Path) -> None:
        self.open = True
        self.folder = folder
        self.socket = AgentSocket(str(folder), lambda: self.open)
        self.socket.start()


@pytest.fixture(params=["ports", "subdomains"])
def front(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Front]:
    with running_front(tmp_path, request.param, several=True) as running:
        running.routes.add(running.key, running.target)
        running.routes.add(ssh_key(str(running.web.ssh_ports[0])), running.target)
        yield running


@pytest.fixture
def agent(front: Front) -> Iterator[Agent]:
    made = Agent(front.ca.parent)
    yield made
    with suppress(Exception):
        made.socket.stop()


def ends_within(streams: list[Stream], seconds: float) -> float:
    """The seconds after which all of them are closed."""
    begun = time.monotonic()
    assert all(stream.ended() for stream in streams)
    took = time.monotonic() - begun
    assert took < seconds
    return took


def test_the_times_fit_each_other() -> None:
    """Others count on a silent host only once it has shut itself off, with a second to spare."""
    assert SHUT_SECONDS - 1.0 >= OPEN_SECONDS + CHECKS * CHECK_SECONDS


@pytest.mark.parametrize("dead", [False, True])
def test_a_host_that_falls_behind_cuts_everything(front: Front, agent: Agent, dead: bool) -> None:
    time.sleep(2 * CHECK_SECONDS)
    streams = [Stream(front), Stream(front, front.web.ssh_ports[0])]
    assert all(stream.opened for stream in streams)
    assert front.app().status == 200
    if dead:
        agent.socket.stop()
    else:
        agent.open = False
    begun, most = time.monotonic(), SHUT_SECONDS - OPEN_SECONDS
    took = ends_within(streams, most)
    # A worker that is restarted, or a slow look, cuts nothing.
    assert took > 2.0
    # Streams are cut by checks of their own (follows.lua), which may be a moment earlier.
    while (status := front.app().status) == 200 and time.monotonic() - begun < most:
        time.sleep(0.1)
    assert status == 503
    assert front.app("/.slipway/enter").seen["who"] == "portal"
    assert front.ask("localhost").status == 200
    again = Agent(front.ca.parent) if dead else agent
    again.open = True
    time.sleep(2 * CHECK_SECONDS)
    assert front.app().status == 200
    with closing(Stream(front)) as stream:
        assert stream.opened
    if dead:
        again.socket.stop()


def test_a_host_whose_agent_hangs_cuts_everything(front: Front) -> None:
    """It accepts connections, as a stopped process does, and never answers."""
    silent = socket.socket(socket.AF_UNIX)
    silent.bind(f"{front.ca.parent}/agent.sock")
    silent.listen(100)
    with silent:
        ends_within([Stream(front)], SHUT_SECONDS)
        assert front.app().status == 503


def test_a_reload_refuses_nothing(front: Front, agent: Agent) -> None:
    time.sleep(2 * CHECK_SECONDS)
    haproxy = Haproxy(str(front.ca.parent))
    front.process.send_signal(12)
    seen = set()
    until = time.monotonic() + 2.0
    while time.monotonic() < until:
        with suppress(Exception):
            if haproxy.ask("show map") and front.routes.is_lost():
                front.routes.add(front.key, front.target)
                front.routes.set_complete(front.routes.generation())
        seen.add(front.app().status)
        time.sleep(0.05)
    assert 503 not in seen
    assert agent.open


@pytest.mark.parametrize("open_", [False, True])
def test_a_reload_of_a_host_that_is_shut_begins_without_routes(
    front: Front, agent: Agent, open_: bool
) -> None:
    """A new process serves until its first check; what was revoked meanwhile must not open."""
    folder = front.ca.parent
    agent.open = open_
    time.sleep(2 * CHECK_SECONDS)
    assert follows(str(folder)) is open_
    assert _reload_proxy(make_settings(folder, several=True), Namespace()) == 0
    if open_:
        assert front.app().seen["who"] == "app"
        return
    answers = [front.app() for _ in range(50)]
    assert all(answer.status == 503 or answer.seen["who"] == "portal" for answer in answers)
    assert front.routes.is_lost()


def test_a_machine_is_known_by_its_number(tmp_path: Path) -> None:
    first = machine_id(str(tmp_path))
    assert machine_id(str(tmp_path)) == first
    (tmp_path / "other").mkdir()
    assert machine_id(str(tmp_path / "other")) != first


def test_a_host_that_falls_behind_cuts_streams_of_before_a_reload(
    front: Front, agent: Agent
) -> None:
    """A process that HAProxy has left behind for its open streams looks after them as before."""
    time.sleep(2 * CHECK_SECONDS)
    streams = [Stream(front), Stream(front, front.web.ssh_ports[0])]
    assert all(stream.opened for stream in streams)
    Haproxy(str(front.ca.parent)).reload()
    time.sleep(1.0)
    agent.socket.stop()
    took = ends_within(streams, SHUT_SECONDS)
    assert took > 2.0

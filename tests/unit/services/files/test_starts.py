"""Many people open their files at once: all servers are started, in turn, and nobody is refused."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from portal.core.auth.person import Person
from portal.core.files.server import FileRequest, NoReply, StartOrder
from portal.core.threads import in_background_thread
from portal.errors import Starting, Unavailable
from portal.services.files.starts import THREADS, Starts
from portal.services.owner_queue import Action, OwnerQueue
from tests.support.cluster import wait_for
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import make_settings

LIST = FileRequest("GET", "/v1/list/home")
CLASS = [Person(f"student{number}", False, "x") for number in range(200)]
ALICE = Person("alice", False, "x")


class Later:
    """Keeps starts until they are run."""

    def __init__(self) -> None:
        self.actions: list[Action] = []

    def __call__(self, owner: str, name: str, action: Action) -> None:
        """Keep it."""
        self.actions.append(action)

    def run(self) -> None:
        """Run them."""
        while self.actions:
            self.actions.pop(0)()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(make_settings(tmp_path))


@pytest.fixture
def later(world: World) -> Later:
    """All starts take too long for the requests that begin them."""
    queue = Later()
    world.services.file_servers._starts = Starts(queue, wait=0, short_wait=0)
    return queue


def test_a_class_opens_its_files(world: World, later: Later) -> None:
    """Formerly 2 at once in a process, and an error for everybody else."""
    servers = world.services.file_servers
    for _ in range(3):  # pages are loaded again meanwhile
        pauses = []
        for person in CLASS:
            with pytest.raises(Starting) as caught:
                servers.ask(person, LIST)
            pauses.append(caught.value.retry_seconds)
        assert pauses[:5] == [1, 1, 1, 1, 2]
        assert pauses[-1] == 10
    assert "after those of 199 others" in caught.value.text
    later.run()
    assert [servers.ask(person, LIST).status for person in CLASS] == [200] * 200
    assert world.file_servers.starts == [person.name for person in CLASS]


def test_a_start_that_fails_late_is_told_by_the_next_request(world: World, later: Later) -> None:
    world.file_servers.away = True
    servers = world.services.file_servers
    with pytest.raises(Starting):
        servers.ask(ALICE, LIST)
    later.run()
    with pytest.raises(Unavailable, match="login node"):
        servers.ask(ALICE, LIST)
    world.file_servers.away = False
    world.clock.advance(seconds=60)
    with pytest.raises(Starting):
        servers.ask(ALICE, LIST)
    later.run()
    assert servers.ask(ALICE, LIST).status == 200


def test_a_server_that_another_process_has_started_meanwhile(world: World, later: Later) -> None:
    servers = world.services.file_servers
    with pytest.raises(Starting):
        servers.ask(ALICE, LIST)
    servers._start("alice", "", NoReply.ENDED)
    later.run()
    assert servers.ask(ALICE, LIST).status == 200
    assert world.file_servers.starts == ["alice"]


def test_a_shell_that_hangs_keeps_nobody_else_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, released, start = OwnerQueue(THREADS), threading.Event(), world.file_servers.start
    queue.start()
    servers = world.services.file_servers
    servers._starts = Starts(queue, wait=30, short_wait=10)

    def hangs(owner: str, order: StartOrder) -> tuple[str, int]:
        assert in_background_thread(), "no thread of the web application"
        if owner == "alice":
            released.wait(60)
        return start(owner, order)

    monkeypatch.setattr(world.file_servers, "start", hangs)
    waiting = threading.Thread(target=servers.ask, args=(ALICE, LIST))
    waiting.start()
    try:
        wait_for("her start", lambda: "alice" in servers._starts._starts)
        for person in CLASS[:20]:
            assert servers.ask(person, LIST).status == 200
        with pytest.raises(Starting):
            servers.ask(ALICE, LIST)
    finally:
        released.set()
        waiting.join()
    assert servers.ask(ALICE, LIST).status == 200


def test_no_start_is_lost_behind_one_that_has_just_ended() -> None:
    """Until its thread has left it, the queue drops what has the same name."""
    queue, left, ended = OwnerQueue(THREADS), threading.Event(), list[int]()
    queue.start()

    def leave_late(owner: str, name: str, action: Action) -> None:
        queue(owner, name, lambda: (action(), left.wait(20)))

    starts = Starts(leave_late, wait=10)
    starts.run("alice", partial(ended.append, 1))
    threading.Timer(0.5, left.set).start()
    starts.run("alice", partial(ended.append, 2))
    assert ended == [1, 2]

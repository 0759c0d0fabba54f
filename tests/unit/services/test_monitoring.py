"""Looks at the portal's parts: what is found, and how often they are looked at."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlmodel import Session as Database
from sqlmodel import update

from portal.core.cluster.node_use import NodeUse
from portal.core.hosts import SHUT_SECONDS
from portal.errors import Unavailable
from portal.services.monitoring import Cached
from portal.store.hosts import HostStore
from portal.store.tables import HostRow
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import make_settings


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal whose worker runs."""
    made = make_world(make_settings(tmp_path))
    made.worker.poll()
    made.services.monitoring.beat()
    return made


def states(world: World) -> dict[str, bool]:
    """Whether each part works, as a new process sees it."""
    return {part.name: part.ok for part in world.services.monitoring._parts()}


def test_everything_works(world: World) -> None:
    assert states(world) == dict.fromkeys(("database", "worker", "slurm", "haproxy", "disk"), True)


def test_a_worker_that_was_killed(world: World) -> None:
    world.clock.advance(seconds=31)
    assert states(world) == {
        "database": True, "worker": False, "slurm": False, "haproxy": True, "disk": True,
    }  # fmt: skip


def test_slurm_does_not_answer(world: World) -> None:
    world.slurm.down = True
    world.clock.advance(seconds=31)
    world.services.monitoring.beat()
    world.worker.poll()
    assert [name for name, ok in states(world).items() if not ok] == ["slurm"]


def test_haproxy_does_not_answer(world: World) -> None:
    def hang_up() -> bool:
        raise Unavailable("The proxy in front of the apps does not answer.")

    world.routes.is_lost = hang_up  # type: ignore[method-assign]
    assert [name for name, ok in states(world).items() if not ok] == ["haproxy"]


def test_a_database_that_can_only_be_read(world: World) -> None:
    @event.listens_for(world.engine, "checkout")
    def refuse(connection: object, *_: object) -> None:
        connection.execute("PRAGMA query_only=ON")  # type: ignore[attr-defined]

    parts = world.services.monitoring._parts()
    wrong = [(part.name, part.text) for part in parts if not part.ok]
    assert wrong == [("database", "nothing can be stored")]


def test_figures(world: World) -> None:
    nodes = [NodeUse(name, ("main",), name != "n1", 4, 8000) for name in ("n1", "n2", "n3")]
    world.status.nodes.save(nodes)
    text = world.services.monitoring.exposition().decode()
    assert 'slipway_nodes{state="usable"} 2.0' in text
    assert 'slipway_nodes{state="unusable"} 1.0' in text
    assert 'slipway_sessions{state="RUNNING"} 0.0' in text
    assert "slipway_look_age_seconds 0.0" in text
    assert 'slipway_certificate_days{certificate="server"} 300.0' in text


def test_an_answer_is_kept_for_a_second() -> None:
    now, looks = [0.0], iter("ab")
    cached = Cached(lambda: next(looks), lambda: now[0])
    seen = []
    for moment in (0.0, 0.9, 1.1, 2.0):
        now[0] = moment
        seen.append(cached())
    assert seen == ["a", "a", "b", "b"]


def test_nobody_waits_for_a_slow_look() -> None:
    now, go, begun = [0.0], threading.Event(), threading.Event()
    answers = iter("ab")

    def look() -> str:
        if now[0]:
            begun.set()
            assert go.wait(10)
        return next(answers)

    cached = Cached(look, lambda: now[0])
    assert cached() == "a"
    now[0] = 5.0
    slow = threading.Thread(target=cached)
    slow.start()
    assert begun.wait(10)
    assert cached() == "a"  # while the other thread looks
    go.set()
    slow.join()
    assert cached() == "b"


def test_one_of_several_hosts(tmp_path: Path) -> None:
    """It is ready only while its own worker follows the database."""
    settings = make_settings(tmp_path)
    state = settings.state.model_copy(update={"hosts": "several", "host_name": "a"})
    world = make_world(settings.model_copy(update={"state": state}))
    assert not states(world)["host"]
    HostStore(world.engine).report("b", "b")
    assert not states(world)["host"]
    agent = world.services.host_agent
    assert agent is not None
    agent.follow()
    assert states(world)["host"]
    seen = datetime.now(UTC) - timedelta(seconds=SHUT_SECONDS)
    with Database(world.engine) as db:
        db.exec(update(HostRow).values(seen=seen))
        db.commit()
    assert [name for name, ok in states(world).items() if not ok] == ["worker", "slurm", "host"]

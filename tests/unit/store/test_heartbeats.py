"""Signs of life and figures in the database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from portal.config import StateSettings
from portal.core.auth.person import Person
from portal.core.launch.request import LaunchRequest
from portal.store.figures import FigureStore
from portal.store.heartbeats import HeartbeatStore
from tests.support import fakes
from tests.support.fakes import make_world
from tests.unit.web.conftest import LAUNCH, make_settings

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_the_last_sign_counts(tmp_path: Path) -> None:
    beats = HeartbeatStore(fakes.fresh_database(StateSettings(directory=str(tmp_path))))
    assert beats.beats() == {}
    beats.beat("worker", NOON)
    beats.beat("look", NOON)
    beats.beat("worker", NOON + timedelta(seconds=3))
    assert beats.beats() == {"worker": NOON + timedelta(seconds=3), "look": NOON}


def test_figures(tmp_path: Path) -> None:
    world = make_world(make_settings(tmp_path))
    request = LaunchRequest.model_validate(LAUNCH)
    world.launch(Person("alice", False, ""), request)
    world.worker.read_partitions()
    world.worker.poll()
    found = FigureStore(world.engine).figures()
    assert found.sessions["PENDING"] == 1
    assert found.sessions["RUNNING"] == 0
    assert "FINISHED" not in found.sessions
    assert found.revocations == 0

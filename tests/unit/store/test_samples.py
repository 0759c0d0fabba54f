"""Use over time in the database: one transaction with the heartbeat, bounded rows, deletion."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from portal.core.session.session import LIVE, Facts, State
from portal.core.session_job.samples import MOST, Reading
from portal.store.engine import open_database, upgrade
from portal.store.samples import SampleStore
from portal.store.sessions import SessionStore
from tests.support.stored_sessions import numbered_session

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
RUNNING = numbered_session(1, state=State.RUNNING)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A database with one running session."""
    url = f"sqlite:///{tmp_path}/test.db"
    upgrade(url)
    found = open_database(url)
    SessionStore(found).add([RUNNING], None, "", {})
    return found


def beat(engine: Engine, second: float, memory: int = 1, **facts: object) -> bool:
    """Record one heartbeat."""
    reading = Reading(at=NOON + timedelta(seconds=second), cpu_seconds=second, memory=memory)
    changes = Facts(memory_used=memory, **facts)  # type: ignore[typeddict-item]
    return SampleStore(engine).record(RUNNING.id, LIVE, changes, reading)


def test_a_heartbeat_changes_the_session_and_its_samples(engine: Engine) -> None:
    assert beat(engine, 0, 5)
    assert beat(engine, 10, 3)
    assert beat(engine, 70, 4)
    known = SessionStore(engine).get(RUNNING.id)
    assert known is not None
    assert known.memory_used == 4
    assert [(s.memory, s.reports) for s in SampleStore(engine).samples(RUNNING.id)] == [
        (5, 2),
        (4, 1),
    ]


def test_a_session_that_is_over_is_unchanged(engine: Engine) -> None:
    SessionStore(engine).change(RUNNING.id, LIVE, memory_used=7)
    SampleStore(engine).record(
        RUNNING.id, {State.PENDING}, Facts(memory_used=9), Reading(at=NOON, cpu_seconds=1, memory=9)
    )
    known = SessionStore(engine).get(RUNNING.id)
    assert known is not None
    assert (known.memory_used, SampleStore(engine).samples(RUNNING.id)) == (7, [])


def test_days_of_heartbeats_stay_few_rows_and_few_statements(engine: Engine) -> None:
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    most, latest = 0, 0
    for minute in range(4 * MOST):
        statements.clear()
        assert beat(engine, 60 * minute, memory=minute)
        most = max(most, len(SampleStore(engine).samples(RUNNING.id)))
        if minute > 3 * MOST:
            latest = max(latest, len([s for s in statements if "session_sample" in s]))
    found = SampleStore(engine).samples(RUNNING.id)
    assert MOST // 2 <= len(found) <= most <= MOST
    assert (found[0].at, found[-1].cpu_seconds, found[-1].memory) == (
        NOON,
        60.0 * (4 * MOST - 1),
        4 * MOST - 1,
    )
    assert latest <= 4


def test_samples_are_deleted_some_time_after_the_end(engine: Engine) -> None:
    beat(engine, 0)
    samples = SampleStore(engine)
    samples.forget_samples(NOON + timedelta(days=900))
    assert len(samples.samples(RUNNING.id)) == 1
    SessionStore(engine).change(RUNNING.id, LIVE, ended=NOON)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE session SET state = 'FINISHED'")
    samples.forget_samples(NOON)
    assert len(samples.samples(RUNNING.id)) == 1
    samples.forget_samples(NOON + timedelta(seconds=1))
    assert samples.samples(RUNNING.id) == []

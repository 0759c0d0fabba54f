"""What is stored about jobs that somebody looked at: one question for all, and readings."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlmodel import Session as Database

from portal.core.jobs.job_usage import JobUsage
from portal.core.jobs.output import Reading
from portal.store.engine import open_database, upgrade
from portal.store.jobs.pages import JobPageStore
from portal.store.tables import JobUsageRow

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TEN = timedelta(seconds=10)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    url = f"sqlite:///{tmp_path}/test.db"
    upgrade(url)
    return open_database(url)


@pytest.fixture
def pages(engine: Engine) -> JobPageStore:
    return JobPageStore(engine)


def test_one_question_in_ten_seconds_for_each_job(pages: JobPageStore) -> None:
    assert pages.claim_usage("7", NOON, NOON - TEN)
    assert not pages.claim_usage("7", NOON + TEN / 2, NOON - TEN / 2)
    assert pages.claim_usage("8", NOON, NOON - TEN)
    assert pages.claim_usage("7", NOON + TEN, NOON)
    assert pages.usage("7") is None


def test_of_many_who_look_at_the_same_time_one_asks(pages: JobPageStore) -> None:
    for moment in (NOON, NOON + TEN):
        found: list[bool] = []
        start = threading.Barrier(8)

        def look(
            moment: datetime = moment,
            found: list[bool] = found,
            start: threading.Barrier = start,
        ) -> None:
            start.wait()
            found.append(pages.claim_usage("7", moment, moment - TEN))

        threads = [threading.Thread(target=look) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [False] * 7 + [True]


def test_answers_are_kept(pages: JobPageStore, engine: Engine) -> None:
    usage = JobUsage(NOON, NOON, cores=4, cpu_seconds=1.5, steps=("batch", "0"), problem="ü")
    pages.claim_usage("7", NOON, NOON - TEN)
    pages.save_usage("7", usage)
    assert pages.usage("7") == usage
    assert pages.usage("8") is None
    with Database(engine) as db:
        db.add(JobUsageRow(job="9", asked=NOON, usage='{"of": "another version"}'))
        db.commit()
    assert pages.usage("9") is None


def test_readings_within_ten_minutes_are_one(pages: JobPageStore) -> None:
    def read(by: str, minutes: int) -> bool:
        at = NOON + timedelta(minutes=minutes)
        return pages.note_reading("7", Reading(by, at), at - timedelta(minutes=10))

    assert [read("admin", minute) for minute in (0, 1, 9, 11)] == [True, False, False, True]
    assert read("carol", 12)
    assert pages.reading("7") == Reading("carol", NOON + timedelta(minutes=12))
    assert pages.reading("8") is None


def test_what_is_old_is_forgotten(pages: JobPageStore) -> None:
    pages.claim_usage("7", NOON, NOON)
    pages.note_reading("7", Reading("admin", NOON), NOON)
    pages.claim_usage("8", NOON + TEN, NOON)
    assert pages.forget(NOON + TEN) == 2
    assert pages.reading("7") is None
    assert not pages.claim_usage("8", NOON + TEN, NOON)

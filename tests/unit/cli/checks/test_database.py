"""The database's schema, against this release's."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from portal.cli.checks.database import check_database, check_jobs
from portal.config import Settings
from portal.core.cluster.job_reports import JobState
from tests.support.job_store import NOW, ended_job, migrated_store
from tests.unit.cli.checks.site import Site


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE alembic_version SET version_num = '0020'", "schema is 0020, this release's"),
        ("UPDATE alembic_version SET version_num = '0019'", "0019, is older than that of release"),
        ("UPDATE alembic_version SET version_num = '9999'", "9999, is of a newer release"),
        ("DELETE FROM alembic_version", "the database is empty"),
        ("SELECT 1", "has this release's schema"),
    ],
)
def test_its_revision(site: Site, statement: str, words: str) -> None:
    url = f"sqlite:///{site.folder}/state/slipway.db"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()
    (one,) = check_database(url)
    assert words in one.text
    assert one.ok is (statement == "SELECT 1")


def test_what_jobs_need_of_it(settings: Settings, tmp_path: Path) -> None:
    store = migrated_store(tmp_path)
    store.settle(
        [
            ended_job(1, JobState.COMPLETED),
            ended_job(21, JobState.FAILED, array=20, tasks="1"),
            ended_job(22, JobState.FAILED, array=20, tasks="2"),
            ended_job(3, JobState.COMPLETED, end=NOW - timedelta(days=2)),
        ]
    )
    (finding,) = check_jobs(store, settings, NOW)
    most = settings.batch.jobs_days * 3
    assert "the database has 4 jobs, and 1 MB in all; 3 jobs and tasks ended" in finding.text
    assert f"at most {most} are kept, which need 0 MB" in finding.text
    assert store.size(NOW).database_bytes > 100_000


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database " * 100)
    (one,) = check_database(f"sqlite:///{tmp_path}/x.db")
    assert "does not answer: file is not a database" in one.text


def test_looking_creates_nothing(tmp_path: Path) -> None:
    (one,) = check_database(f"sqlite:///{tmp_path}/x.db")
    assert "run `slipway init`" in one.text
    assert list(tmp_path.iterdir()) == []

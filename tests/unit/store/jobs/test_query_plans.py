"""SQLite's plans for the statements about jobs: each uses an index, and each index is used."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event

from portal.core.cluster.queue import QueuePart
from portal.core.jobs.job import JobTab
from portal.core.jobs.query import JobQuery, JobSort
from portal.store.figures import FigureStore
from portal.store.jobs.queued import queued_jobs
from portal.store.jobs.store import JobStore
from portal.store.tables.jobs import JOBS
from tests.support.job_store import NOW, migrated_store, queued_job


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The plan of each statement that the store executes."""
    store = migrated_store(tmp_path_factory.mktemp("jobs"))
    statements: dict[str, Any] = {}

    def note(_db: Any, _cursor: Any, statement: str, values: Any, *_: object) -> None:
        if "job" in statement.split() and not statement.startswith("INSERT"):
            statements[statement] = values

    event.listen(store._engine, "before_cursor_execute", note)
    store.save([queued_job(1), queued_job(21, array=20, tasks="1")], NOW)
    ask_everything(store)
    event.remove(store._engine, "before_cursor_execute", note)
    return {statement: plan(store._engine, statement, statements[statement])
            for statement in statements}  # fmt: skip


def plan(engine: Engine, statement: str, values: Any) -> str:
    """How SQLite finds the rows of a statement, in its words."""
    with engine.connect() as db:
        first = values[0] if isinstance(values, list) else values
        steps = db.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", first)
        return "\n".join(row[-1] for row in steps)


def ask_everything(store: JobStore) -> None:
    """Everything that the store can be asked."""
    pages = [
        JobQuery(state=tab, sort=sort, owner=owner)
        for tab in (None, *JobTab)
        for sort in JobSort
        for owner in (None, "alice")
    ]
    for query in (*pages, JobQuery(q="x"), JobQuery(array="20"), JobQuery(days=1)):
        store.query(query, NOW)
        store.counts(query, NOW)
    store.live_ids()
    store.without_texts(10)
    store.without_session(10)
    store.link_sessions()
    store.unsettled(NOW, 10)
    store.leave(["21"], NOW)
    store.delete_ended(NOW - timedelta(days=9))
    store.count_tasks(NOW - timedelta(days=9))
    store.owners(10)
    for shown in ("1", "20_1", "20_[2-3]", "20+1"):
        store.get(shown)
    store.get_many(["20"])
    store.ahead([queued_job(1)])
    for part in (QueuePart(), QueuePart(user="alice")):
        store.queued(part)
    queued_jobs(store._engine)
    FigureStore(store._engine).figures()


def test_no_statement_reads_all_rows(plans: dict[str, str]) -> None:
    reading = {
        statement: text
        for statement, text in plans.items()
        if any(
            step.startswith(("SCAN job", "SCAN tasks")) and "USING" not in step
            for step in text.splitlines()
        )
    }
    assert reading == {}


def test_every_index_is_used(plans: dict[str, str]) -> None:
    used = {word for text in plans.values() for word in text.split()}
    assert {str(index.name) for index in JOBS.indexes} - used == set()

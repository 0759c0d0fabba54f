"""The list from the database: each row once, in order, fast, and searched literally."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event
from sqlmodel import delete

from portal.core.session.query import ListQuery, Page, Sort, Status
from portal.core.session.session import Cause, Session, State
from portal.store.engine import open_database, upgrade
from portal.store.sessions import SessionStore
from portal.store.tables import SessionRow
from tests.support.stored_sessions import numbered_session

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def session(number: int, **changes: object) -> Session:
    """A session whose fields depend on its number, but for the time of its launch."""
    return numbered_session(number, **{"created": NOON, **changes})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> SessionStore:
    """A store whose tables were created by the migrations."""
    url = f"sqlite:///{tmp_path_factory.mktemp('listing')}/test.db"
    upgrade(url)
    return SessionStore(open_database(url))


@pytest.fixture(autouse=True)
def empty(store: SessionStore) -> Iterator[None]:
    """Each test begins with an empty list."""
    yield
    clear(store)


def clear(store: SessionStore) -> None:
    """Delete all sessions."""
    with store._engine.begin() as connection:
        connection.execute(delete(SessionRow))


def fill(store: SessionStore, sessions: list[Session]) -> None:
    """Store sessions of any user."""
    if sessions:
        store.add(sessions, None, "", {})


seconds = st.integers(0, 3).map(lambda s: NOON + timedelta(seconds=s))  # many share one
made = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["beta", "Alpha", "gamma", "Beta"]),
        "owner": st.sampled_from(["alice", "bob"]),
        "state": st.sampled_from(list(State)),
        "created": seconds,
        "started": st.none() | seconds,
        "cpus": st.integers(1, 2),
        "memory_mb": st.sampled_from([600, 1024]),
    }
)


def shown_key(sort: Sort, row: Session) -> Any:
    """The sort key as a user sees it."""
    end = datetime.min if sort is Sort.STARTED_LAST else datetime.max  # never started: last
    far = end.replace(tzinfo=UTC)
    return {
        "created": row.created,
        "name": row.name.lower(),
        "state": row.state,
        "owner": row.owner,
        "started": row.started or far,
        "cpus": row.cpus,
        "memory": row.memory_mb,
    }[sort.key]


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(made, max_size=14),
    late=st.lists(made, max_size=5),
    sort=st.sampled_from(Sort),
    limit=st.integers(1, 4),
)
def test_paging_shows_each_row_once_even_while_rows_are_added(
    store: SessionStore,
    rows: list[dict[str, Any]],
    late: list[dict[str, Any]],
    sort: Sort,
    limit: int,
) -> None:
    clear(store)
    before = [session(number, **values) for number, values in enumerate(rows)]
    coming = [session(100 + number, **values) for number, values in enumerate(late)]
    fill(store, before)
    pages: list[Page] = []
    cursor: str | None = None
    while cursor or not pages:
        pages.append(store.query(ListQuery(sort=sort, limit=limit, cursor=cursor), NOON))
        cursor = pages[-1].following
        if coming:
            fill(store, [coming.pop()])
    seen = [row for page in pages for row in page.sessions]
    ids = [row.id for row in seen]
    assert len(ids) == len(set(ids))
    assert {row.id for row in before} <= set(ids)
    keys = [shown_key(sort, row) for row in seen]
    assert keys == sorted(keys, reverse=sort.descending)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(made, max_size=14), sort=st.sampled_from(Sort), limit=st.integers(1, 4))
def test_paging_back_shows_the_same_pages(
    store: SessionStore, rows: list[dict[str, Any]], sort: Sort, limit: int
) -> None:
    clear(store)
    fill(store, [session(number, **values) for number, values in enumerate(rows)])
    there = [store.query(ListQuery(sort=sort, limit=limit), NOON)]
    assert there[0].previous is None
    while there[-1].following:
        query = ListQuery(sort=sort, limit=limit, cursor=there[-1].following)
        there.append(store.query(query, NOON))
    back = [there[-1]]
    while back[-1].previous:
        query = ListQuery(sort=sort, limit=limit, cursor=back[-1].previous)
        back.append(store.query(query, NOON))
    assert [page.sessions for page in reversed(back)] == [page.sessions for page in there]


FOUND = session(
    0xABCDEF, name="training", node="n7", job_id="4711", partition="gpu_fast", version="2.2"
)


@pytest.mark.parametrize(
    "words",
    ["train", "TRAIN", "n7", "4711", "471", "gpu_fast", "python", "2.2", "0000000", "train gpu 47"],
)
def test_the_search_finds(store: SessionStore, words: str) -> None:
    fill(store, [FOUND])
    assert store.query(ListQuery(q=words, owner="alice"), NOON).sessions == (FOUND,)


@pytest.mark.parametrize(
    "words", ["tr%ng", "gpu-fast", "_raining", "711", "abcdef", "alice", "train cobol", "\\", "/"]
)
def test_the_search_does_not_find(store: SessionStore, words: str) -> None:
    fill(store, [FOUND])
    assert store.query(ListQuery(q=words, owner="alice"), NOON).sessions == ()


def test_owners_are_found_among_everybodys_only(store: SessionStore) -> None:
    fill(store, [FOUND, session(2, owner="bob")])
    assert store.query(ListQuery(q="ali"), NOON).sessions == (FOUND,)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({"environment": "julia"}, {"session2"}),
        ({"resource_group": "gpu"}, {"session3"}),
        ({"owner": "bob"}, {"session4"}),
        ({"state": "other"}, {"session5"}),
        ({"environment": "jul"}, set()),
        ({"status": "out_of_memory"}, {"session5"}),
        ({"status": "waiting"}, {"session1", "session2", "session3", "session4"}),
        ({"status": "running"}, set()),
        ({"days": 1}, {"session1", "session3", "session4", "session5"}),
        ({"days": 7}, {"session1", "session2", "session3", "session4", "session5"}),
    ],
)
def test_filters(store: SessionStore, wanted: dict[str, Any], names: set[str]) -> None:
    fill(
        store,
        [
            session(1),
            session(2, environment="julia", created=NOON - timedelta(days=3)),
            session(3, partition="gpu"),
            session(4, owner="bob"),
            session(5, state=State.FAILED, cause=Cause.OUT_OF_MEMORY),
        ],
    )
    assert {row.name for row in store.query(ListQuery(**wanted), NOON).sessions} == names


def test_counts_and_owners(store: SessionStore) -> None:
    fill(store, [session(1), session(2, state=State.FAILED), session(3, owner="bob")])
    assert store.counts(ListQuery(owner="alice"), NOON) == {State.PENDING: 1, State.FAILED: 1}
    assert store.counts(ListQuery(), NOON) == {State.PENDING: 2, State.FAILED: 1}
    found = ListQuery(q="session2", state="running", status=Status.RUNNING)
    assert store.counts(found, NOON) == {State.FAILED: 1}  # in all tabs, by the other filters
    assert store.owners(10) == ["alice", "bob"]


def plans(store: SessionStore, ask: Callable[[], object]) -> list[list[str]]:
    """The database's query plan for each query."""
    asked: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    event.listen(store._engine, "before_cursor_execute", note)
    try:
        ask()
    finally:
        event.remove(store._engine, "before_cursor_execute", note)
    with store._engine.connect() as connection:
        return [
            [str(row[-1]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {s}", p)]
            for s, p in asked
            if s.startswith("SELECT")
        ]


@pytest.mark.parametrize("owner", ["alice", None])
@pytest.mark.parametrize("state", ["running", "finished", "other"])
def test_open_pages_read_only_what_they_show(
    store: SessionStore, owner: str | None, state: str
) -> None:
    query = ListQuery.model_validate({"state": state, "owner": owner})
    (page,) = plans(store, lambda: store.query(query, NOON))
    assert page[0].startswith("SEARCH session USING INDEX")
    if owner and state == "running":  # of many states; this index has them and the order
        assert page == ["SEARCH session USING INDEX session_newest (owner=?)"]
    elif state == "running":
        assert "session_tab_of_all (state=?)" in page[0]
    else:  # for one state the index has the order, too
        assert len(page) == 1
        assert "session_tab" in page[0]
    (counts,) = plans(store, lambda: store.counts(ListQuery(owner=owner), NOON))
    assert len(counts) == 1
    assert "COVERING INDEX" in counts[0]
    assert len(counts) == 1
    assert "COVERING INDEX" in counts[0]


def test_unseen_ends_are_found_by_their_index(store: SessionStore) -> None:
    (found,) = plans(store, lambda: store.ended_unseen("alice", NOON, 4))
    assert any(
        "INDEX session_unseen (owner=? AND end_seen=? AND ended>?)" in step for step in found
    ), found

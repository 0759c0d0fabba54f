"""The database: stored fields, and which of two concurrent changes to a row wins."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import inspect
from sqlalchemy.exc import OperationalError
from sqlmodel import SQLModel

from portal.core.session.query import ListQuery
from portal.core.session.session import Session, State
from portal.core.session.transitions import Transition, stop
from portal.store.engine import open_database, upgrade
from portal.store.sessions import SessionStore
from portal.store.tables import SessionRow
from tests.support.stored_sessions import NOON, numbered_session


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    """A store whose tables were created by the migrations."""
    url = f"sqlite:///{tmp_path}/test.db"
    upgrade(url)
    return SessionStore(open_database(url))


def test_the_table_stores_every_field_of_a_session(store: SessionStore) -> None:
    assert set(SessionRow.model_fields) == set(Session.model_fields)
    full = numbered_session(1, started=NOON, port=1, cpu_percent=1.5, pending_reason="Priority")
    store.add([full], None, "", {})
    assert store.get(full.id) == full


def test_migrations_create_the_tables_of_the_code(tmp_path: Path) -> None:
    for name in ("migrated", "made"):
        url = f"sqlite:///{tmp_path}/{name}.db"
        if name == "migrated":
            upgrade(url)
            upgrade(url)  # a second run changes nothing
        else:
            SQLModel.metadata.create_all(open_database(url))
    tables = []
    for name in ("migrated", "made"):
        seen = inspect(open_database(f"sqlite:///{tmp_path}/{name}.db"))
        tables.append(
            {
                table: (
                    {(c["name"], str(c["type"]), c["nullable"]) for c in seen.get_columns(table)},
                    {tuple(i["column_names"]) for i in seen.get_indexes(table)},
                )
                for table in seen.get_table_names()
                if table != "alembic_version"
            }
        )
    assert tables[0] == tables[1]


def test_change_only_from_the_expected_state(store: SessionStore) -> None:
    store.add([numbered_session(1)], None, "", {})
    assert store.change(numbered_session(1).id, {State.RUNNING}, node="n1") is None
    changed = store.apply(numbered_session(1).id, stop("alice", NOON))
    assert changed is not None
    assert (changed.stopped_by, changed.state) == ("alice", State.ENDING)
    assert store.apply(numbered_session(1).id, stop("bob", NOON)) is None


def test_one_of_many_concurrent_changes_wins(store: SessionStore) -> None:
    store.add([numbered_session(1)], None, "", {})
    wins: list[object] = []

    def race() -> None:
        if store.apply(numbered_session(1).id, stop("alice", NOON)) is not None:
            wins.append(1)

    threads = [threading.Thread(target=race) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 1


def test_concurrent_launches_with_one_key_create_one_session(store: SessionStore) -> None:
    made: list[str] = []

    def race(number: int) -> None:
        made.append(store.add([numbered_session(number)], "key", "same", {})[0][0].id)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1
    assert len(store.live()) == 1


def test_pages_contain_each_session_once(store: SessionStore) -> None:
    for number in range(25):
        store.add([numbered_session(number)], None, "", {})
    store.add([numbered_session(99, owner="bob")], None, "", {})
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = ListQuery(state="running", owner="alice", limit=7, cursor=cursor)
        page = store.query(query, NOON)
        cursor = page.following
        seen += [s.name for s in page.sessions]
        if cursor is None:
            break
    assert sorted(seen) == sorted(f"session{number}" for number in range(25))
    assert seen[0] == "session24"
    assert len(store.query(ListQuery(), NOON).sessions) == 26


def test_an_error_of_the_database_repeats_no_value(tmp_path: Path) -> None:
    """L3: a logged database error contains neither value."""
    store = SessionStore(open_database(f"sqlite:///{tmp_path}/empty.db"))
    with pytest.raises(OperationalError) as failed:
        store.add([numbered_session(1, end_text="CANARY-4711")], None, "", {})
    assert "no such table: session" in str(failed.value)
    assert "CANARY-4711" not in str(failed.value)
    assert "CANARY-4711" not in repr(failed.value)


def test_unseen_ends_are_counted_and_the_newest_read(store: SessionStore) -> None:
    over = {"state": State.FINISHED, "cause": "time_limit"}
    for number in range(6):
        ended = NOON + timedelta(minutes=number)
        store.add([numbered_session(number, ended=ended, **over)], None, "", {})
    store.add([numbered_session(10, ended=NOON, owner="bob", **over)], None, "", {})
    store.add([numbered_session(11, ended=NOON, end_seen=NOON, **over)], None, "", {})
    store.add([numbered_session(12, state=State.RUNNING)], None, "", {})
    found = store.ended_unseen("alice", NOON + timedelta(minutes=2), 2)
    assert [one.name for one in found.sessions] == ["session5", "session4"]
    assert (found.count, found.hidden) == (4, 2)
    assert store.see_ends("alice", NOON + timedelta(minutes=4), NOON) == 5
    assert store.see_ends("alice", NOON + timedelta(minutes=4), NOON) == 0
    assert [s.name for s in store.ended_unseen("alice", NOON, 9).sessions] == ["session5"]
    assert store.ended_unseen("carol", NOON, 9).count == 0


def test_concurrent_launches_get_different_names(store: SessionStore) -> None:
    given: list[str] = []

    def launch(number: int) -> None:
        given.append(store.add([numbered_session(number, name="train")], None, "", {})[0][0].name)

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(given) == ["train", *(f"train{number}" for number in range(2, 9))]
    assert {one.name for one in store.live()} == set(given)


def test_names_of_ended_sessions_and_of_others_are_free(store: SessionStore) -> None:
    store.add([numbered_session(1, name="train", state=State.FINISHED)], None, "", {})
    store.add([numbered_session(2, name="train", owner="bob")], None, "", {})
    assert store.add([numbered_session(3, name="train")], None, "", {})[0][0].name == "train"


def test_live_sessions_are_as_stored_and_unchanged_ones_the_same_objects(
    store: SessionStore,
) -> None:
    store.add([numbered_session(number, state=State.RUNNING) for number in range(3)], None, "", {})
    before = {session.id: session for session in store.live()}
    changed, ended, same = before
    store.change(changed, {State.RUNNING}, cpu_percent=12.5)
    finish = Transition(frozenset({State.RUNNING}), {"state": State.FINISHED})
    assert store.apply(ended, finish)
    after = {session.id: session for session in store.live()}
    assert after == {changed: store.get(changed), same: before[same]}
    assert after[changed].cpu_percent == 12.5
    assert after[same] is before[same]


def test_live_sessions_that_may_have_a_users_folders_mounted(store: SessionStore) -> None:
    mounts = {
        "own": ("alice", []),
        "shared": ("bob", [{"folder": "data"}, {"folder": "alice/a b", "read_only": True}]),
        "another": ("bob", [{"folder": "alice2/x"}, {"folder": "data"}]),
        "wildcard": ("bob", [{"folder": "a_ice/x"}]),
        "over": ("alice", []),
    }
    for number, (name, (owner, folders)) in enumerate(mounts.items()):
        state = State.FINISHED if name == "over" else State.RUNNING
        session = numbered_session(number, name=name, owner=owner, mounts=folders, state=state)
        store.add([session], None, "", {})
    assert {session.name for session in store.mounting("alice")} == {"own", "shared"}
    assert {session.name for session in store.mounting("a_ice")} == {"wildcard"}

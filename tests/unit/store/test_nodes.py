"""The nodes in the database."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from pathlib import Path

import pytest
from sqlalchemy import Engine, event
from sqlmodel import SQLModel

from portal.core.cluster.node_list import NodeQuery, NodeSort
from portal.core.cluster.node_use import NodeUse, UserAllocation
from portal.store.nodes import NodeStore
from tests.support import fakes
from tests.unit.web.conftest import make_settings


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An empty database."""
    return fakes.fresh_database(make_settings(tmp_path).state)


def node(name: str, taken: int = 0, **changes: object) -> NodeUse:
    """A node of which alice has this many cores."""
    held = (UserAllocation("alice", taken, 100, 0.0, 1),) if taken else ()
    values = {"partitions": ("main",), "usable": True, "cpus": 8, "memory_mb": 8000}
    return NodeUse(name, held=held, **{**values, **changes})  # type: ignore[arg-type]  # by name


def names(store: NodeStore, **filters: object) -> list[str]:
    """The names of the nodes that match."""
    query = NodeQuery(**filters)  # type: ignore[arg-type]  # by name
    return [node.name for node in store.page(query).nodes]


NODES = [
    node("n1", 2, state="mixed", features=("ib", "amd")),
    node("n2", 4, state="mixed", partitions=("main", "gpu")),
    node("n3", state="down*", usable=False, reason="Not responding"),
    node("n4", state="idle+drain", usable=False, reason="disk", features=("ib",)),
    node("x_1", state="idle", partitions=("Main",), cpus=64),
]


def test_nodes_out_of_service_come_first_and_filters_narrow(engine: Engine) -> None:
    store = NodeStore(engine)
    store.save(NODES)
    assert names(store) == ["n3", "n4", "x_1", "n1", "n2"]
    assert names(store, partition="gpu") == ["n2"]
    assert names(store, partition="Main") == ["x_1"]
    assert names(store, partition="ain") == []
    assert names(store, feature="ib") == ["n4", "n1"]
    assert names(store, state="mixed") == ["n1", "n2"]
    assert names(store, reason="disk") == ["n4"]
    assert names(store, reason="none") == ["x_1", "n1", "n2"]
    assert names(store, available="no") == ["n3", "n4"]
    assert names(store, name="_") == ["x_1"]
    assert names(store, name="N?", available="yes") == ["n1", "n2"]
    assert names(store, name="X_") == ["x_1"]
    assert names(store, name="%") == names(store, name="x%*") == names(store, name="\\") == []
    assert names(store, name="*1") == ["x_1", "n1"]
    assert names(store, sort=NodeSort.MOST_CPUS)[:2] == ["n2", "n1"]
    assert store.page(NodeQuery(name="n", limit=1)).matching == 4
    assert tuple(NODES[:1]) == store.page(NodeQuery(name="n1")).nodes


def test_pages_follow_each_other(engine: Engine) -> None:
    store = NodeStore(engine)
    store.save([node(f"n{number:03}", state=f"s{number % 3}") for number in range(100)])
    for sort in NodeSort:
        listed, cursor = [], None
        while True:
            page = store.page(NodeQuery(sort=sort, limit=30, cursor=cursor))
            listed += [node.name for node in page.nodes]
            cursor = page.following
            if cursor is None:
                break
        assert len(set(listed)) == len(listed) == 100


@pytest.fixture
def written(engine: Engine) -> Iterator[list[int]]:
    """The numbers of rows that statements insert."""
    numbers: list[int] = []
    columns = len(SQLModel.metadata.tables["node"].columns)

    def note(_c: object, _cu: object, statement: str, values: Sized, *_others: object) -> None:
        if statement.startswith("INSERT INTO node"):
            numbers.append(len(values) // columns)

    event.listen(engine, "before_cursor_execute", note)
    yield numbers
    event.remove(engine, "before_cursor_execute", note)


def test_only_changes_are_written(engine: Engine, written: list[int]) -> None:
    store = NodeStore(engine)
    store.save(NODES)
    store.save([*NODES[1:4], node("x_1", 64), node("n5")])
    assert written == [5, 2]
    assert sorted(names(store)) == ["n2", "n3", "n4", "n5", "x_1"]
    assert store.summary().taken.cpus == 68
    assert [user.cpus for user in store.users()] == [68]


def test_a_process_that_did_not_save_last_writes_all(engine: Engine, written: list[int]) -> None:
    first, second = NodeStore(engine), NodeStore(engine)
    first.save(NODES)
    second.save([*NODES, node("n9")])
    first.save(NODES)
    assert written == [5, 6, 5]
    assert "n9" not in names(first)


def test_features_of_the_nodes_that_are_large_enough(engine: Engine) -> None:
    store = NodeStore(engine)
    store.save(NODES)
    sets = store.features_of("main", 8, 8000, 0)
    assert len(sets) == 3
    assert set(sets) == {frozenset({"ib", "amd"}), frozenset(), frozenset({"ib"})}
    assert store.features_of(None, 64, 8000, 0) == [frozenset()]
    assert store.features_of(None, 65, 8000, 0) == []
    assert store.names_in("gpu") == ["n2"]

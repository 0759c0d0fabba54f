"""The cluster's nodes as last polled: one row for each, and their summary."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Engine, func
from sqlmodel import Session as Database
from sqlmodel import col, delete, insert, select

from portal.core.cluster.node_list import (
    NO_REASON,
    NodePage,
    NodeQuery,
    NodeSummary,
    state_key,
    summarize,
)
from portal.core.cluster.node_use import NodeUse, UserAllocation, users_of
from portal.store.paging import Listing, read_piece
from portal.store.reading import reading
from portal.store.tables import ClusterNodesRow, NodeRow

_AT_ONCE = 500
"""Names in one statement."""
_NAME: Any = col(NodeRow.name)
_KEYS: dict[str, Any] = {
    "state": col(NodeRow.state_key),
    "name": _NAME,
    "cpus": col(NodeRow.cpus_taken),
}


class NodeStore:
    """The nodes and the allocations on each. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)
        self._saved: tuple[int, Mapping[str, NodeUse]] = (0, {})
        """The number and the nodes of this process's last save."""

    def save(self, nodes: Sequence[NodeUse]) -> None:
        """Save all nodes; writes only those that have changed since the last save."""
        users = users_of(nodes)
        texts = {
            "summary": _SUMMARY.dump_json(summarize(nodes, users)).decode(),
            "users": _USERS.dump_json(users).decode(),
        }
        current = {node.name: node for node in nodes}
        with Database(self._engine) as db:
            row = db.get(ClusterNodesRow, 1) or ClusterNodesRow()
            number, before = self._saved
            if row.number != number or not number:  # another process has saved since
                before = {}
                db.exec(delete(NodeRow))
            changed = [node for name, node in current.items() if before.get(name) != node]
            _drop(db, [*(before.keys() - current), *(n.name for n in changed if n.name in before)])
            if changed:
                db.execute(insert(NodeRow), [_row(node) for node in changed])
            row.number += 1
            row.sqlmodel_update(texts)
            db.add(row)
            db.commit()
            self._saved = row.number, current

    def summary(self) -> NodeSummary:
        """All nodes together; an empty one before the first poll."""
        with reading(self._readers) as db:
            text = db.exec(select(ClusterNodesRow.summary)).first()
            return _SUMMARY.validate_json(text) if text else NodeSummary()

    def users(self) -> list[UserAllocation]:
        """The allocation of each user on all nodes, most cores first."""
        with reading(self._readers) as db:
            text = db.exec(select(ClusterNodesRow.users)).first()
            return _USERS.validate_json(text) if text else []

    def page(self, query: NodeQuery) -> NodePage:
        """One page of the list."""
        conditions = list(_conditions(query))
        listing = Listing(query.sort, _KEYS[query.sort.key], _NAME, query.place, query.limit)
        with reading(self._readers) as db:
            piece = read_piece(db, select(NodeRow).where(*conditions), listing)
            matching = db.exec(select(func.count()).select_from(NodeRow).where(*conditions)).one()
            nodes = tuple(_node(row) for row in piece.rows)
        return NodePage(nodes, piece.following, piece.previous, matching)

    def names_in(self, partition: str) -> list[str]:
        """The names of a partition's nodes."""
        condition = _has(NodeRow.partitions, partition)
        with reading(self._readers) as db:
            return list(db.exec(select(NodeRow.name).where(condition)))

    def features_of(
        self, partition: str | None, cpus: int, memory_mb: int, fgpu: float
    ) -> list[frozenset[str]]:
        """The combinations of features of the nodes that are large enough."""
        large = (
            col(NodeRow.cpus) >= cpus,
            col(NodeRow.memory_mb) >= memory_mb,
            col(NodeRow.fgpu) >= fgpu,
        )
        query = select(NodeRow.features).where(*large).distinct()
        if partition is not None:
            query = query.where(_has(NodeRow.partitions, partition))
        with reading(self._readers) as db:
            return [frozenset(_words(text)) for text in db.exec(query)]


def _drop(db: Database, names: Sequence[str]) -> None:
    for start in range(0, len(names), _AT_ONCE):
        db.exec(delete(NodeRow).where(col(NodeRow.name).in_(names[start : start + _AT_ONCE])))


def _conditions(query: NodeQuery) -> Iterator[Any]:
    if query.partition is not None:
        yield _has(NodeRow.partitions, query.partition)
    if query.feature is not None:
        yield _has(NodeRow.features, query.feature)
    if query.state is not None:
        yield col(NodeRow.state) == query.state
    if query.reason is not None:
        yield col(NodeRow.reason) == ("" if query.reason == NO_REASON else query.reason)
    if query.available is not None:
        yield col(NodeRow.usable) == (query.available == "yes")
    if query.name is not None:
        yield _matches(query.name)


def _has(column: Any, word: str) -> Any:
    """Whether a list has a word; unlike LIKE, it distinguishes case on both databases."""
    return func.replace(column, f",{word},", "") != column


def _matches(pattern: str) -> Any:
    """Whether a name has this part, or is of this pattern, in any case on both databases."""
    if "*" not in pattern and "?" not in pattern:
        return _NAME.icontains(pattern, autoescape=True)
    escaped = "".join(f"\\{c}" if c in "%_\\" else c for c in pattern)
    return _NAME.ilike(escaped.replace("*", "%").replace("?", "_"), escape="\\")


def _row(node: NodeUse) -> dict[str, Any]:
    taken = node.taken
    return {
        "name": node.name,
        "partitions": _joined(node.partitions),
        "features": _joined(node.features),
        "state": node.state,
        "state_key": state_key(node),
        "reason": node.reason,
        "usable": node.usable,
        "cpus": node.cpus,
        "memory_mb": node.memory_mb,
        "fgpu": node.fgpu,
        "cpus_taken": taken.cpus,
        "held": json.dumps([astuple(share) for share in node.held]) if node.held else "",
    }


def _node(row: NodeRow) -> NodeUse:
    return NodeUse(
        row.name,
        tuple(_words(row.partitions)),
        row.usable,
        row.cpus,
        row.memory_mb,
        row.fgpu,
        tuple(UserAllocation(*share) for share in json.loads(row.held or "[]")),
        row.state,
        tuple(_words(row.features)),
        row.reason,
    )


def _joined(words: Iterable[str]) -> str:
    """Words without commas, with one before and after each."""
    return "".join(f",{word}," for word in words)


def _words(text: str) -> Iterator[str]:
    return filter(None, text.split(","))


_SUMMARY = TypeAdapter(NodeSummary)
_USERS = TypeAdapter(list[UserAllocation])

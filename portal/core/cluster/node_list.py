"""The administrators' list of nodes: how it is filtered and sorted, and its summary."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Annotated, Literal

from pydantic import Field

from portal.core.cluster.node_use import NodeUse, UserAllocation, add_up
from portal.core.listing import Cursor, CursorText, Order, PlainText, SearchQuery

MAX_NODES = 500
"""Nodes in one response."""
MOST_GROUPS = 100
"""Groups of one kind in the summary: the largest."""
HEAVIEST = 6
"""Users in the summary: those with the most cores."""
NO_REASON = "none"
"""The filter for nodes without a reason, in sinfo's word: no node has it as its reason."""
_NOTHING = UserAllocation("", 0, 0)
_MOST_NAMES = 200
"""Characters of the names of nodes out of service for one reason."""


class NodeSort(Order):
    """Orders of the list of nodes."""

    STATE = "state"
    STATE_BACK = "-state"
    NAME = "name"
    NAME_BACK = "-name"
    MOST_CPUS = "-cpus"
    FEWEST_CPUS = "cpus"


class NodeQuery(SearchQuery):
    """Which nodes to list: filters, sorting, page size and cursor."""

    partition: PlainText | None = None
    state: PlainText | None = Field(None, description="Slurm's state with its flags: mixed+drain")
    feature: PlainText | None = None
    name: PlainText | None = Field(
        None, description="A part of the name, or a pattern of the whole name with * and ?"
    )
    reason: PlainText | None = Field(
        None, description=f"The whole reason; {NO_REASON} for nodes without one, as sinfo has it"
    )
    available: Literal["yes", "no"] | None = None
    sort: NodeSort = NodeSort.STATE
    limit: Annotated[int, Field(ge=1, le=MAX_NODES)] = 100
    cursor: CursorText | None = None

    @property
    def place(self) -> Cursor[NodeSort] | None:
        """Where the page begins; None at the start of the list."""
        return Cursor.read(self.cursor, NodeSort) if self.cursor else None


@dataclass(frozen=True)
class NodePage:
    """One page of the list, the cursors of the next and the previous one, and all that match."""

    nodes: tuple[NodeUse, ...] = ()
    following: str | None = None
    previous: str | None = None
    matching: int = 0


def state_key(node: NodeUse) -> str:
    """Sort key of a node's state: out of service with a reason, without one, with a reason only."""
    rank = (0 if node.reason else 1) if not node.usable else (2 if node.reason else 3)
    return f"{rank}{node.state}"


@dataclass(frozen=True)
class NodeGroup:
    """The nodes of a partition, of a state or with a feature; memory in MiB."""

    name: str
    nodes: int
    usable: int
    cpus: int
    memory_mb: int
    fgpu: float
    taken: UserAllocation


@dataclass(frozen=True)
class OutOfService:
    """The nodes that are out of service in one state for one reason."""

    state: str
    reason: str
    nodes: int
    names: str
    """Their names in Slurm's notation; "..." at the end if there are more."""


@dataclass(frozen=True)
class NodeSummary:
    """All nodes together, and by partition, state and feature."""

    nodes: int = 0
    usable: int = 0
    capacity: UserAllocation = _NOTHING
    """The resources of all nodes: jobs also hold those of nodes that take no new ones."""
    taken: UserAllocation = _NOTHING
    """The allocations of all users together."""
    users: int = 0
    heaviest: tuple[UserAllocation, ...] = ()
    out_of_service: tuple[OutOfService, ...] = ()
    """Most nodes first."""
    partitions: tuple[NodeGroup, ...] = ()
    states: tuple[NodeGroup, ...] = ()
    features: tuple[NodeGroup, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    """How many partitions, states, features and reasons there are, of which the tuples above have
    the largest; by the names of the filters."""

    def number(self, name: str) -> int:
        """The number of values of a filter."""
        return self.numbers.get(name, 0)


def summarize(nodes: Sequence[NodeUse], users: Sequence[UserAllocation]) -> NodeSummary:
    """The summary of all nodes; `users` as from users_of."""
    whole, reasons = _group("", nodes), _out_of_service(nodes)
    groups = {
        "partition": _grouped(nodes, lambda node: node.partitions),
        "state": _grouped(nodes, lambda node: (node.state,)),
        "feature": _grouped(nodes, lambda node: node.features),
    }
    return NodeSummary(
        whole.nodes,
        whole.usable,
        UserAllocation("", whole.cpus, whole.memory_mb, whole.fgpu),
        add_up("", users),
        len(users),
        tuple(users[:HEAVIEST]),
        tuple(reasons[:MOST_GROUPS]),
        **{f"{name}s": tuple(of[:MOST_GROUPS]) for name, of in groups.items()},
        numbers={name: len(of) for name, of in groups.items()} | {"reason": len(reasons)},
    )


def _grouped(
    nodes: Iterable[NodeUse], names: Callable[[NodeUse], Iterable[str]]
) -> list[NodeGroup]:
    members: defaultdict[str, list[NodeUse]] = defaultdict(list)
    for node in nodes:
        for name in names(node):
            members[name].append(node)
    groups = [_group(name, group) for name, group in members.items()]
    return sorted(groups, key=lambda group: (-group.nodes, group.name))


def _group(name: str, nodes: Sequence[NodeUse]) -> NodeGroup:
    return NodeGroup(
        name,
        len(nodes),
        sum(node.usable for node in nodes),
        sum(node.cpus for node in nodes),
        sum(node.memory_mb for node in nodes),
        round(sum(node.fgpu for node in nodes), 3),
        add_up("", (node.taken for node in nodes)),
    )


def _out_of_service(nodes: Iterable[NodeUse]) -> list[OutOfService]:
    by_reason: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for node in nodes:
        if not node.usable:
            by_reason[node.state, node.reason].append(node.name)
    rows = [
        OutOfService(state, reason, len(names), short_names(names))
        for (state, reason), names in by_reason.items()
    ]
    # Those with a reason first: somebody, or a check, has said what is wrong.
    rows.sort(key=lambda row: (not row.reason, -row.nodes, row.state, row.reason))
    return rows


def short_names(names: Iterable[str]) -> str:
    """Names of nodes in Slurm's notation, as "n[01-04],n07,x1"; "..." ends a longer text."""
    texts: list[str] = []
    length = 0
    for text in _ranges(names):
        length += len(text) + 1
        if length > _MOST_NAMES:
            return ",".join([*texts, "..."])
        texts.append(text)
    return ",".join(texts)


def _ranges(names: Iterable[str]) -> Iterator[str]:
    """Runs of names that differ by 1 in the number at their end, which keeps its width."""
    parts = sorted(_split(name) for name in set(names))
    indexed = enumerate(parts)
    for (prefix, width, _), run in groupby(indexed, lambda item: _run_of(*item)):
        numbers = [part[2] for _, part in run]
        first, last = (
            f"{number:0{width}}" if width else "" for number in (numbers[0], numbers[-1])
        )
        yield f"{prefix}{first}" if len(numbers) == 1 else f"{prefix}[{first}-{last}]"


def _split(name: str) -> tuple[str, int, int]:
    number = re.search(r"[0-9]{1,18}$", name, re.ASCII)
    if number is None:
        return name, 0, 0
    return name[: number.start()], len(number[0]), int(number[0])


def _run_of(index: int, part: tuple[str, int, int]) -> tuple[str, int, int]:
    prefix, width, number = part
    return prefix, width, number - index

"""What people hold of the cluster now, and the two bars that show it.

All of it comes from one look at Slurm's queue and nodes; nothing is ever counted up or down, so
nothing can drift. A job holds what Slurm gave it from its start until its last node is clean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from portal.core.bounds import cores, groups_for, size, totals
from portal.core.job import JobReport, JobState, Node, Partition
from portal.core.limits import Amount, Limits, Total, standing


@dataclass(frozen=True)
class Holding:
    """What the jobs of one user, account, QOS and partition hold together; memory in MiB."""

    user: str
    account: str
    qos: str
    partition: str
    cpus: int
    memory_mb: int


@dataclass(frozen=True)
class Room:
    """A partition's usable nodes together: how large, and how much of it nobody holds."""

    partition: str
    cpus: int
    memory_mb: int
    free_cpus: int
    free_memory_mb: int


@dataclass(frozen=True)
class Use:
    """The cluster's use at one look."""

    holdings: tuple[Holding, ...] = ()
    rooms: tuple[Room, ...] = ()


@dataclass(frozen=True)
class Meter:
    """One resource of one person in one group: cores, or MiB of memory."""

    mine: int
    allowed: int | None
    """The most that this person may hold in this group; None while it is not known."""
    available: int | None
    """How much more of it could be had this moment."""

    @property
    def upper(self) -> float | None:
        """Percent: mine of what I may allocate in this group."""
        return _percent(self.mine, self.allowed)

    @property
    def lower(self) -> float | None:
        """Percent: mine of mine and what is still allocatable in this group."""
        return _percent(self.mine, None if self.available is None else self.mine + self.available)


def _percent(part: int, whole: int | None) -> float | None:
    if whole is None:
        return None
    return min(100.0 * part / whole, 100.0) if whole else 0.0


def measure(jobs: Iterable[JobReport], nodes: Sequence[Node]) -> Use:
    """Add up what all jobs hold."""
    cpus: Counter[tuple[str, str, str, str]] = Counter()
    memory: Counter[tuple[str, str, str, str]] = Counter()
    taken_cpus: Counter[str] = Counter()
    taken_memory: Counter[str] = Counter()
    for job in jobs:
        if job.state.over or job.state is JobState.PENDING:
            continue
        key = (job.user, job.account, job.qos, job.partition)
        cpus[key] += job.cpus
        memory[key] += job.memory_mb
        for node in job.nodes:  # squeue says how much in all: shares are taken to be equal
            taken_cpus[node] += -(-job.cpus // len(job.nodes))
            taken_memory[node] += -(-job.memory_mb // len(job.nodes))
    return Use(
        tuple(Holding(*key, cpus[key], memory[key]) for key in sorted(cpus)),
        tuple(_rooms(nodes, taken_cpus, taken_memory)),
    )


def _rooms(
    nodes: Sequence[Node], taken_cpus: Counter[str], taken_memory: Counter[str]
) -> Iterable[Room]:
    for name in dict.fromkeys(node.partition for node in nodes):
        usable = [node for node in nodes if node.partition == name and node.usable]
        yield Room(
            name,
            sum(node.cpus for node in usable),
            sum(node.memory_mb for node in usable),
            sum(max(node.cpus - taken_cpus[node.name], 0) for node in usable),
            sum(max(node.memory_mb - taken_memory[node.name], 0) for node in usable),
        )


def meters(user: str, partition: str, limits: Limits | None, use: Use) -> tuple[Meter, Meter]:
    """One person's cores and memory in one partition."""
    own = standing(user, partition, limits) if limits else None
    found = list(totals(own)) if own else []
    room = next((room for room in use.rooms if room.partition == partition), None)
    mine = _held(use, Total(Amount(), "", user, partitions=frozenset({partition})))
    return (
        _meter(
            mine.cpus or 0,
            (room.cpus, room.free_cpus) if room else None,
            [(t.amount.cpus, _held(use, t).cpus or 0) for t in found],
        ),
        _meter(
            mine.memory_mb or 0,
            (room.memory_mb, room.free_memory_mb) if room else None,
            [(t.amount.memory_mb, _held(use, t).memory_mb or 0) for t in found],
        ),
    )


def _meter(
    mine: int, room: tuple[int, int] | None, limits: Iterable[tuple[int | None, int]]
) -> Meter:
    known = [(most, held) for most, held in limits if most is not None]
    allowed = [most for most, _held in known]
    available = [most - held for most, held in known]
    if room is not None:
        allowed.append(room[0])
        available.append(room[1])
    return Meter(
        mine,
        min(allowed, default=None),
        None if not available else max(min(available), 0),
    )


def held_back(
    user: str, partition: str, wanted: tuple[int, int], limits: Limits | None, use: Use
) -> str:
    """Whose limit keeps (cores, MiB) more from this person for now; "" where none does.

    Slurm's own estimate looks at free nodes only, and promises a start that limits then forbid.
    """
    own = standing(user, partition, limits) if limits else None
    for total in totals(own) if own else ():
        held = _held(use, total)
        for most, holds, more, words in (
            (total.amount.cpus, held.cpus, wanted[0], cores),
            (total.amount.memory_mb, held.memory_mb, wanted[1], size),
        ):
            if most is not None and (holds or 0) + more > most:
                return total.who.format(amount=words(most))
    return ""


def _held(use: Use, total: Total) -> Amount:
    counted = [
        holding
        for holding in use.holdings
        if total.user in (None, holding.user)
        and (total.accounts is None or holding.account in total.accounts)
        and total.qos in (None, holding.qos)
        and (total.partitions is None or holding.partition in total.partitions)
    ]
    return Amount(sum(h.cpus for h in counted), sum(h.memory_mb for h in counted))


@dataclass(frozen=True)
class GroupUse:
    """The bars of one person in one group, with the names of the groups to choose from."""

    group: str
    groups: tuple[str, ...]
    cpus: Meter
    memory: Meter


def group_use(
    user: str,
    wanted: str | None,
    partitions: Sequence[Partition],
    limits: Limits | None,
    use: Use,
) -> GroupUse | None:
    """The bars of the wanted group, else of the default one; None when it is not open to them."""
    groups = groups_for(user, partitions, limits)
    if wanted is None:
        group = next((g for g in groups if g.default), groups[0] if groups else None)
    else:
        group = next((g for g in groups if g.name == wanted), None)
    if group is None:
        return None
    cpus, memory = meters(user, group.name, limits, use)
    return GroupUse(group.name, tuple(g.name for g in groups), cpus, memory)

"""Effective limits of one user in one partition, and where each is set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from portal.core.cluster.inventory import Partition
from portal.core.cluster.jobs import JobReport
from portal.core.cluster.limits import (
    Association,
    Bound,
    Bounds,
    GroupLimit,
    Limits,
    Qos,
    Tres,
    UserLimits,
    user_limits,
    user_limits_of_job,
)
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions
from portal.core.units import floor_size, format_cores, short_minutes

PLACE = "{amount}"
"""Placeholder for the amount in texts about GPU limits."""


@dataclass(frozen=True)
class UserPartition(Partition):
    """A partition with the effective limits of one user."""

    why: Mapping[str, str] = field(default_factory=dict)
    max_jobs: int | None = None

    def too_much(self, what: str) -> str:
        """The limit that a request for more exceeds, in words."""
        return self.why.get(what) or super().too_much(what)


def partitions_for(
    user: str,
    partitions: Sequence[Partition],
    limits: Limits | None,
    options: SlurmOptions = NO_OPTIONS,
) -> list[UserPartition]:
    """The partitions that a user may use with an account and a QOS, each with its bounds."""
    found = []
    for partition in partitions:
        own = user_limits(user, partition.name, limits, options) if limits else None
        if limits is None or (own is not None and not own.entry.root_only):
            found.append(_group(partition, _bounds(partition, own), own))
    return found


def partition_of_job(
    user: str, partition: Partition, job: JobReport, limits: Limits
) -> UserPartition | None:
    """A job's partition with the bounds of the job's account and QOS.

    None if this user is not known to be allowed to use them.
    """
    own = user_limits_of_job(user, partition.name, job.account, job.qos, limits)
    return _group(partition, _bounds(partition, own), own) if own else None


def bounds(user: str, partition: Partition, limits: Limits | None) -> Bounds:
    """The tightest of the largest node, the partition, its QOS, the QOS and the associations."""
    return _bounds(partition, user_limits(user, partition.name, limits) if limits else None)


def _group(partition: Partition, own: Bounds, limits: UserLimits | None) -> UserPartition:
    data = {item.name: getattr(partition, item.name) for item in fields(Partition)}
    data["max_cpus"] = own.cpus.value if own.cpus else partition.max_cpus
    data["max_memory_mb"] = own.memory_mb.value if own.memory_mb else partition.max_memory_mb
    data["max_minutes"] = own.minutes.value if own.minutes else None
    data["default_minutes"] = _default_minutes(partition, limits, data["max_minutes"])
    data["max_shards"] = own.shards.value if own.shards else None
    data["max_gpus"] = own.gpus.value if own.gpus else None
    named = {
        "cpus": own.cpus, "memory": own.memory_mb, "time": own.minutes,
        "shards": own.shards, "gpus": own.gpus,
    }  # fmt: skip
    why = {name: bound.why for name, bound in named.items() if bound}
    return UserPartition(**data, why=why, max_jobs=own.jobs.value if own.jobs else None)


def _default_minutes(
    partition: Partition, limits: UserLimits | None, most: int | None
) -> int | None:
    """The partition's DefaultTime, or its MaxTime, as far as the user's own limits permit."""
    if limits is None:
        return None
    usual = limits.entry.default_minutes or partition.max_minutes
    return min((minutes for minutes in (usual, most) if minutes is not None), default=None)


def _bounds(partition: Partition, own: UserLimits | None) -> Bounds:
    cpus, memory_mb = partition.max_cpus, partition.max_memory_mb
    return Bounds(
        cpus=_tightest(
            [
                _largest(cpus, format_cores),
                *_of_one_kind(partition, own, lambda a: a.cpus, format_cores),
            ]
        ),
        memory_mb=_tightest(
            [
                _largest(memory_mb, floor_size),
                *_of_one_kind(partition, own, lambda a: a.memory_mb, floor_size),
            ]
        ),
        minutes=_tightest(_minutes(partition, own)),
        jobs=_tightest(_jobs(own)),
        # What a shard amounts to depends on the kind of GPU, so the text is completed later.
        shards=_tightest(_of_one_kind(partition, own, lambda a: a.shards, lambda _: PLACE)),
        gpus=_tightest(_of_one_kind(partition, own, lambda a: a.gpus, lambda _: PLACE)),
    )


def _largest(value: int, words: Callable[[int], str]) -> Bound:
    return Bound(value, f"the largest node here has {words(value)}")


def _tightest(found: Iterable[Bound]) -> Bound | None:
    return min(found, key=lambda bound: bound.value, default=None)


Pick = Callable[[Tres], int | None]


def _of_one_kind(
    partition: Partition, own: UserLimits | None, pick: Pick, words: Callable[[int], str]
) -> Iterator[Bound]:
    if own is None:
        return
    entry = pick(own.entry.node)
    if entry is not None:
        yield Bound(entry, f"a session in {partition.name} may have {words(entry)} at most")
    for amount, who in _per_session(own, pick):
        yield Bound(amount, f"a session of yours may have {words(amount)} at most ({who})")
    for total in group_limits(own):
        value = pick(total.amount)
        if value is not None:
            yield Bound(value, f"{total.who.format(amount=words(value))}")


def _per_session(own: UserLimits, pick: Pick) -> Iterator[tuple[int, str]]:
    """Limits per job and per node: the QOS's if set, else the association's."""
    kinds: list[tuple[Callable[[Qos], Tres], Callable[[Association], Tres], str, str]] = [
        (lambda q: q.job, lambda a: a.job, "MaxTRESPerJob", "MaxTRES"),
        (lambda q: q.node, lambda a: a.node, "MaxTRESPerNode", "MaxTRESPerNode"),
    ]
    for of_qos, of_association, qos_word, word in kinds:
        found = [(pick(of_qos(q)), f"QOS {q.name}, {qos_word}") for q in own.qos]
        if own.association is not None:
            where = f"account {own.association.account}, {word}"
            found.append((pick(of_association(own.association)), where))
        value, who = next(((v, w) for v, w in found if v is not None), (None, ""))
        if value is not None:
            yield value, who


def group_limits(own: UserLimits) -> Iterator[GroupLimit]:
    """Limits on several jobs together, without those overridden by an earlier limit."""
    users, accounts, groups = Tres(), Tres(), Tres()
    account = own.association.account if own.association else ""
    for qos in own.qos:
        # The partition's QOS counts the jobs of all partitions that share it.
        scope = (None, own.by_partition) if qos.name == own.entry.qos else (qos.name, None)
        # Without what an earlier limit of the same kind overrides.
        one, team, everybody = qos.user.beside(users), qos.account.beside(accounts), qos.group
        yield GroupLimit(
            one,
            f"you may use {{amount}} at once (QOS {qos.name}, MaxTRESPerUser)",
            user=own.user,
            qos=scope[0],
            partitions=scope[1],
        )
        yield GroupLimit(
            team,
            f"account {account} may use {{amount}} at once (QOS {qos.name}, MaxTRESPerAccount)",
            accounts=frozenset({account}),
            qos=scope[0],
            partitions=scope[1],
        )
        yield GroupLimit(
            everybody.beside(groups),
            f"everybody in QOS {qos.name} together may use {{amount}} (GrpTRES)",
            qos=scope[0],
            partitions=scope[1],
        )
        users, accounts, groups = (
            users.or_else(qos.user),
            accounts.or_else(qos.account),
            groups.or_else(everybody),
        )
    below: frozenset[str] = frozenset()
    for link in own.chain:
        if link.user:
            who = "you may use {amount} at once (your association, GrpTRES)"
            yield GroupLimit(link.group.beside(groups), who, link.user, frozenset({link.account}))
        else:
            below |= {link.account}
            who = f"account {link.account} may use {{amount}} at once (GrpTRES)"
            yield GroupLimit(link.group.beside(groups), who, accounts=below)


def _minutes(partition: Partition, own: UserLimits | None) -> Iterator[Bound]:
    flags = own.qos[-1].flags if own and own.qos else ()
    if partition.max_minutes is not None and "PartitionTimeLimit" not in flags:
        minutes = partition.max_minutes
        yield Bound(minutes, f"sessions here may run {short_minutes(minutes)} at most")
    if own is None:
        return
    found = [(q.minutes, f"QOS {q.name}, MaxWall") for q in own.qos]
    if own.association is not None:
        found.append((own.association.minutes, f"account {own.association.account}, MaxWall"))
    value, who = next(((v, w) for v, w in found if v is not None), (None, ""))
    if value is not None:
        words = short_minutes(value)
        yield Bound(value, f"sessions of yours may run {words} at most ({who})")


def _jobs(own: UserLimits | None) -> Iterator[Bound]:
    if own is None:
        return
    found = [(q.jobs, f"QOS {q.name}, MaxJobsPerUser") for q in own.qos]
    if own.association is not None:
        found.append((own.association.jobs, f"account {own.association.account}, MaxJobs"))
    value, who = next(((v, w) for v, w in found if v is not None), (None, ""))
    if value is not None:
        yield Bound(value, f"you may have {value} running jobs at once ({who})")

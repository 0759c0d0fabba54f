"""Effective limits of one user in one partition, and the place where each is set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

from portal.core.cluster.inventory import Partition
from portal.core.cluster.job_reports import JobReport
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

PLACEHOLDER = "{amount}"
"""Placeholder for the amount in texts about GPU limits."""


@dataclass(frozen=True)
class UserPartition(Partition):
    """A partition with the effective limits of one user."""

    why: Mapping[str, str] = field(default_factory=dict)
    max_jobs: int | None = None

    def too_much(self, resource: str) -> str:
        """The limit on "cpus", "memory", "time", "shards" or "gpus", in words."""
        return self.why.get(resource) or super().too_much(resource)


def partitions_for(
    user: str,
    partitions: Sequence[Partition],
    limits: Limits | None,
    options: SlurmOptions = NO_OPTIONS,
) -> list[UserPartition]:
    """The partitions that a user may use with an account and a QOS, each with its bounds."""
    usable = []
    for partition in partitions:
        effective = user_limits(user, partition.name, limits, options) if limits else None
        if limits is None or (effective is not None and not effective.entry.root_only):
            usable.append(_group(partition, _bounds(partition, effective), effective))
    return usable


def partition_of_job(
    user: str, partition: Partition, job: JobReport, limits: Limits
) -> UserPartition | None:
    """A job's partition with the bounds of the job's account and QOS.

    None if this user may not use them, as far as is known.
    """
    effective = user_limits_of_job(user, partition.name, job.account, job.qos, limits)
    return _group(partition, _bounds(partition, effective), effective) if effective else None


def bounds(user: str, partition: Partition, limits: Limits | None) -> Bounds:
    """The tightest bounds set by the largest node, the partition, both QOS and the associations."""
    return _bounds(partition, user_limits(user, partition.name, limits) if limits else None)


def _group(partition: Partition, tightest: Bounds, limits: UserLimits | None) -> UserPartition:
    data = {item.name: getattr(partition, item.name) for item in fields(Partition)}
    data["max_cpus"] = tightest.cpus.value if tightest.cpus else partition.max_cpus
    data["max_memory_mb"] = (
        tightest.memory_mb.value if tightest.memory_mb else partition.max_memory_mb
    )
    data["max_minutes"] = tightest.minutes.value if tightest.minutes else None
    data["default_minutes"] = _default_minutes(partition, limits, data["max_minutes"])
    data["max_shards"] = tightest.shards.value if tightest.shards else None
    data["max_gpus"] = tightest.gpus.value if tightest.gpus else None
    by_resource = {
        "cpus": tightest.cpus, "memory": tightest.memory_mb, "time": tightest.minutes,
        "shards": tightest.shards, "gpus": tightest.gpus,
    }  # fmt: skip
    why = {name: bound.why for name, bound in by_resource.items() if bound}
    return UserPartition(**data, why=why, max_jobs=tightest.jobs.value if tightest.jobs else None)


def _default_minutes(
    partition: Partition, limits: UserLimits | None, most: int | None
) -> int | None:
    """The partition's DefaultTime, else its MaxTime, as far as the user's limits permit."""
    if limits is None:
        return None
    default = limits.entry.default_minutes or partition.max_minutes
    return min((minutes for minutes in (default, most) if minutes is not None), default=None)


def _bounds(partition: Partition, effective: UserLimits | None) -> Bounds:
    cpus, memory_mb = partition.max_cpus, partition.max_memory_mb
    return Bounds(
        cpus=_tightest(
            [
                _largest(cpus, format_cores),
                *_of_one_kind(partition, effective, lambda a: a.cpus, format_cores),
            ]
        ),
        memory_mb=_tightest(
            [
                _largest(memory_mb, floor_size),
                *_of_one_kind(partition, effective, lambda a: a.memory_mb, floor_size),
            ]
        ),
        minutes=_tightest(_minutes(partition, effective)),
        jobs=_tightest(_jobs(effective)),
        # The size of a shard depends on the kind of GPU, so the text is completed later.
        shards=_tightest(
            _of_one_kind(partition, effective, lambda a: a.shards, lambda _: PLACEHOLDER)
        ),
        gpus=_tightest(_of_one_kind(partition, effective, lambda a: a.gpus, lambda _: PLACEHOLDER)),
    )


def _largest(value: int, words: Callable[[int], str]) -> Bound:
    return Bound(value, f"the largest node here has {words(value)}")


def _tightest(candidates: Iterable[Bound]) -> Bound | None:
    return min(candidates, key=lambda bound: bound.value, default=None)


Pick = Callable[[Tres], int | None]


def _of_one_kind(
    partition: Partition, effective: UserLimits | None, pick: Pick, words: Callable[[int], str]
) -> Iterator[Bound]:
    if effective is None:
        return
    entry = pick(effective.entry.node)
    if entry is not None:
        yield Bound(entry, f"a session in {partition.name} may have {words(entry)} at most")
    for amount, source in _per_session(effective, pick):
        yield Bound(amount, f"a session of yours may have {words(amount)} at most ({source})")
    for limit in group_limits(effective):
        value = pick(limit.amount)
        if value is not None:
            yield Bound(value, f"{limit.text.format(amount=words(value))}")


def _per_session(effective: UserLimits, pick: Pick) -> Iterator[tuple[int, str]]:
    """Limits per job and per node: the QOS's if set, else the association's."""
    kinds: list[tuple[Callable[[Qos], Tres], Callable[[Association], Tres], str, str]] = [
        (lambda q: q.job, lambda a: a.job, "MaxTRESPerJob", "MaxTRES"),
        (lambda q: q.node, lambda a: a.node, "MaxTRESPerNode", "MaxTRESPerNode"),
    ]
    for of_qos, of_association, qos_word, word in kinds:
        candidates = [(pick(of_qos(q)), f"QOS {q.name}, {qos_word}") for q in effective.qos]
        if effective.association is not None:
            where = f"account {effective.association.account}, {word}"
            candidates.append((pick(of_association(effective.association)), where))
        value, source = next(((v, w) for v, w in candidates if v is not None), (None, ""))
        if value is not None:
            yield value, source


def group_limits(effective: UserLimits) -> Iterator[GroupLimit]:
    """Limits on several jobs together, without those that an earlier limit overrides."""
    users, accounts, groups = Tres(), Tres(), Tres()
    account = effective.association.account if effective.association else ""
    for qos in effective.qos:
        # The partition's QOS counts the jobs of all partitions that share it.
        scope = (
            (None, effective.by_partition) if qos.name == effective.entry.qos else (qos.name, None)
        )
        # An earlier limit of the same kind overrides these.
        per_user, per_account, shared = (
            qos.user.beside(users),
            qos.account.beside(accounts),
            qos.group,
        )
        yield GroupLimit(
            per_user,
            f"you may use {{amount}} at once (QOS {qos.name}, MaxTRESPerUser)",
            user=effective.user,
            qos=scope[0],
            partitions=scope[1],
        )
        yield GroupLimit(
            per_account,
            f"account {account} may use {{amount}} at once (QOS {qos.name}, MaxTRESPerAccount)",
            accounts=frozenset({account}),
            qos=scope[0],
            partitions=scope[1],
        )
        yield GroupLimit(
            shared.beside(groups),
            f"everybody in QOS {qos.name} together may use {{amount}} (GrpTRES)",
            qos=scope[0],
            partitions=scope[1],
        )
        users, accounts, groups = (
            users.or_else(qos.user),
            accounts.or_else(qos.account),
            groups.or_else(shared),
        )
    below: frozenset[str] = frozenset()
    for link in effective.chain:
        if link.user:
            text = "you may use {amount} at once (your association, GrpTRES)"
            yield GroupLimit(link.group.beside(groups), text, link.user, frozenset({link.account}))
        else:
            below |= {link.account}
            text = f"account {link.account} may use {{amount}} at once (GrpTRES)"
            yield GroupLimit(link.group.beside(groups), text, accounts=below)


def _minutes(partition: Partition, effective: UserLimits | None) -> Iterator[Bound]:
    flags = effective.qos[-1].flags if effective and effective.qos else ()
    if partition.max_minutes is not None and "PartitionTimeLimit" not in flags:
        minutes = partition.max_minutes
        yield Bound(minutes, f"sessions here may run {short_minutes(minutes)} at most")
    if effective is None:
        return
    candidates = [(q.minutes, f"QOS {q.name}, MaxWall") for q in effective.qos]
    if effective.association is not None:
        candidates.append(
            (effective.association.minutes, f"account {effective.association.account}, MaxWall")
        )
    value, source = next(((v, w) for v, w in candidates if v is not None), (None, ""))
    if value is not None:
        words = short_minutes(value)
        yield Bound(value, f"sessions of yours may run {words} at most ({source})")


def _jobs(effective: UserLimits | None) -> Iterator[Bound]:
    if effective is None:
        return
    candidates = [(q.jobs, f"QOS {q.name}, MaxJobsPerUser") for q in effective.qos]
    if effective.association is not None:
        candidates.append(
            (effective.association.jobs, f"account {effective.association.account}, MaxJobs")
        )
    value, source = next(((v, w) for v, w in candidates if v is not None), (None, ""))
    if value is not None:
        yield Bound(value, f"you may have {value} running jobs at once ({source})")

"""Slurm's limits in plain words, each with the command that changes it.

The portal only displays them: they are stored and changed in Slurm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from portal.core.cluster.inventory import NodeGpus, Partition
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos, Tres
from portal.core.units import exact_size, floor_size, format_cores, format_minutes, plural

EXAMPLE = Tres(8, 32 * 1024)
NO_LIMIT = "no limit"


@dataclass(frozen=True)
class Limit:
    """One limit: its subject, its value, and the command that changes it."""

    what: str
    value: str
    command: str
    set: bool


@dataclass(frozen=True)
class Limited:
    """A QOS, an account, a user or a partition, with every limit that it can have."""

    name: str
    about: str
    limits: tuple[Limit, ...]

    @property
    def set(self) -> list[Limit]:
        """The limits that are set."""
        return [limit for limit in self.limits if limit.set]

    @property
    def unset(self) -> list[Limit]:
        """The limits that are not set."""
        return [limit for limit in self.limits if not limit.set]


@dataclass(frozen=True)
class LimitReport:
    """All of Slurm's limits."""

    applied: bool
    """False if Slurm stores limits but does not enforce them."""
    groups: tuple[Limited, ...] = ()
    qos: tuple[Limited, ...] = ()
    accounts: tuple[Limited, ...] = ()
    users: tuple[Limited, ...] = ()
    """Only users with a limit that differs from their account's."""

    def named(self, part: str) -> LimitReport:
        """Only those with this part in their names."""
        kept = (
            tuple(entity for entity in entities if part.casefold() in entity.name.casefold())
            for entities in (self.groups, self.qos, self.accounts, self.users)
        )
        return LimitReport(self.applied, *kept)


def limit_report(limits: Limits, partitions: Sequence[Partition]) -> LimitReport:
    """Describe all limits in words."""
    entries = {entry.name: entry for entry in limits.partitions}
    accounts = [a for a in limits.associations if not a.user and a.account]
    listed = {a.account: a for a in accounts}
    users = (_user(a, listed.get(a.account)) for a in limits.associations if a.user)
    return LimitReport(
        applied="limits" in limits.enforced,
        groups=tuple(_group(p, entries.get(p.name, PartitionAccess(p.name))) for p in partitions),
        qos=tuple(map(_qos, limits.qos)),
        accounts=tuple(map(_account, accounts)),
        users=tuple(user for user in users if user.set),
    )


def _qos(qos: Qos) -> Limited:
    change = f"sacctmgr modify qos {qos.name} set"
    limits = (
        _amount("Each person, all sessions together", "MaxTRESPerUser", qos.user, change),
        _number("Each person, running sessions", "MaxJobsPerUser", qos.jobs, change),
        _amount("Each account, all sessions together", "MaxTRESPerAccount", qos.account, change),
        _amount("Each session", "MaxTRESPerJob", qos.job, change),
        _amount("Each session on one node", "MaxTRESPerNode", qos.node, change),
        _time("Each session, time", "MaxWall", qos.minutes, change),
        _amount("Everybody together", "GrpTRES", qos.group, change),
    )
    return Limited(qos.name, "", limits)


def _account(association: Association) -> Limited:
    change = f"sacctmgr modify account where name={association.account} set"
    about = f"below {association.parent}" if association.parent else ""
    limits = _of_association(association, None, change, "The account, all sessions together")
    return Limited(association.account, about, tuple(limits))


def _user(association: Association, account: Association | None) -> Limited:
    where = f"name={association.user} account={association.account}"
    about = f"account {association.account}"
    if association.partition:
        where += f" partition={association.partition}"
        about += f", group {association.partition}"
    change = f"sacctmgr modify user where {where} set"
    limits = _of_association(association, account, change, "All sessions together")
    return Limited(association.user, about, tuple(limits))


def _of_association(
    association: Association, account: Association | None, change: str, together: str
) -> Iterator[Limit]:
    """The limits of an account or a user; a user's without those inherited from the account."""
    none = account or Association("")
    yield _amount(together, "GrpTRES", association.group, change)
    yield _amount("Each session", "MaxTRES", _unless_inherited(association.job, none.job), change)
    yield _amount(
        "Each session on one node",
        "MaxTRESPerNode",
        _unless_inherited(association.node, none.node),
        change,
    )
    jobs = None if none.jobs == association.jobs else association.jobs
    yield _number("Each person, running sessions", "MaxJobs", jobs, change)
    minutes = None if none.minutes == association.minutes else association.minutes
    yield _time("Each session, time", "MaxWall", minutes, change)


def _unless_inherited(amount: Tres, above: Tres) -> Tres:
    return Tres() if amount == above else amount


def _group(partition: Partition, entry: PartitionAccess) -> Limited:
    change = f"scontrol update PartitionName={partition.name}"
    people = ",".join(entry.accounts)
    largest = _all_of([format_cores(partition.max_cpus), floor_size(partition.max_memory_mb)])
    largest += "".join(f"; {_gpus(gpus)}" for gpus in partition.gpus if gpus.gpus)
    state = "" if partition.up else "; closed"
    limits = (
        _time("Each session, time", "MaxTime", partition.max_minutes, change),
        _time("Each session that names no time", "DefaultTime", entry.default_minutes, change),
        _number("Each session on one node, cores", "MaxCPUsPerNode", entry.node.cpus, change),
        _memory("Each session on one node, memory", "MaxMemPerNode", entry.node.memory_mb, change),
        _names("Accounts with access", "AllowAccounts", people, "research", change),
        _names("Its own QOS, whose limits come first", "QOS", entry.qos, "normal", change),
    )
    return Limited(partition.name, f"largest node: {largest}{state}", limits)


def _amount(subject: str, key: str, amount: Tres, change: str) -> Limit:
    shown = amount if amount != Tres() else EXAMPLE
    parts = [
        ("cpu", shown.cpus),
        ("mem", shown.memory_mb and _slurm_size(shown.memory_mb)),
        ("gres/shard", shown.shards),
        ("gres/gpu", shown.gpus),
    ]
    value = ",".join(f"{name}={part}" for name, part in parts if part is not None)
    return Limit(subject, _words(amount), f"{change} {key}={value}", amount != Tres())


def _words(amount: Tres) -> str:
    parts = []
    if amount.cpus is not None:
        parts.append(format_cores(amount.cpus))
    if amount.memory_mb is not None:
        parts.append(floor_size(amount.memory_mb))
    if amount.shards is not None:
        parts.append(plural(amount.shards, "GPU shard"))
    if amount.gpus is not None:
        parts.append(plural(amount.gpus, "whole GPU"))
    return _all_of(parts) or NO_LIMIT


def _gpus(gpus: NodeGpus) -> str:
    """The GPUs of a node: "2 GPUs (a100) in 8 shards"."""
    words = plural(gpus.gpus, "GPU") + (f" ({gpus.kind})" if gpus.kind else "")
    return f"{words} in {plural(gpus.shards, 'shard')}" if gpus.shards else words


def _all_of(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def _number(subject: str, key: str, number: int | None, change: str) -> Limit:
    value, written = (NO_LIMIT, 8) if number is None else (str(number), number)
    return Limit(subject, value, f"{change} {key}={written}", number is not None)


def _memory(subject: str, key: str, mb: int | None, change: str) -> Limit:
    value = NO_LIMIT if mb is None else exact_size(mb)
    return Limit(subject, value, f"{change} {key}={mb or EXAMPLE.memory_mb}", mb is not None)


def _time(subject: str, key: str, minutes: int | None, change: str) -> Limit:
    value = NO_LIMIT if minutes is None else format_minutes(minutes)
    written = _slurm_time(480 if minutes is None else minutes)
    return Limit(subject, value, f"{change} {key}={written}", minutes is not None)


def _names(subject: str, key: str, names: str, example: str, change: str) -> Limit:
    value = names.replace(",", ", ") or "not set"
    return Limit(subject, value, f"{change} {key}={names or example}", bool(names))


def _slurm_size(mb: int) -> str:
    return f"{mb // 1024}G" if mb % 1024 == 0 else f"{mb}M"


def _slurm_time(minutes: int) -> str:
    days, remainder = divmod(minutes, 1440)
    clock = f"{remainder // 60:02}:{remainder % 60:02}:00"
    return f"{days}-{clock}" if days else clock

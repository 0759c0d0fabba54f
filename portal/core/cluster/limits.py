"""Slurm's limits, and those that apply to one user in one partition.

Associations, QOS and partitions are read from Slurm and nothing is added here. If a limit of one
kind is set in several places, the first in Slurm's hierarchy applies: the partition's QOS, the
job's QOS, the user's association, its accounts ("Hierarchy" in Slurm's resource_limits page).
Limits of different kinds all apply, so the tightest one bounds a request. None means no limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field


@dataclass(frozen=True)
class Tres:
    """Cores, MiB of memory, GPU shards and whole GPUs; None where nothing is set."""

    cpus: int | None = None
    memory_mb: int | None = None
    shards: int | None = None
    gpus: int | None = None

    def or_else(self, other: Tres) -> Tres:
        """The same, with the other's values where this one has none."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tres(*(theirs if own is None else own for own, theirs in pairs))

    def beside(self, other: Tres) -> Tres:
        """Only the values that the other one does not set."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tres(*(own if theirs is None else None for own, theirs in pairs))


@dataclass(frozen=True)
class Association:
    """Limits of one user in one account, or (without a user) of an account."""

    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    qos: tuple[str, ...] = ()
    default_qos: str = ""
    group: Tres = Tres()
    """All jobs of this association and of those below it together."""
    job: Tres = Tres()
    node: Tres = Tres()
    jobs: int | None = None
    minutes: int | None = None


@dataclass(frozen=True)
class Qos:
    """A quality of service and its limits."""

    name: str
    flags: tuple[str, ...] = ()
    group: Tres = Tres()
    job: Tres = Tres()
    node: Tres = Tres()
    user: Tres = Tres()
    account: Tres = Tres()
    jobs: int | None = None
    """Running jobs of one user."""
    minutes: int | None = None


@dataclass(frozen=True)
class PartitionAccess:
    """Who may use a partition (() allows everyone), and its limits on each node of a job."""

    name: str
    qos: str = ""
    accounts: tuple[str, ...] = ()
    not_accounts: tuple[str, ...] = ()
    allowed_qos: tuple[str, ...] = ()
    not_qos: tuple[str, ...] = ()
    node: Tres = Tres()
    default_minutes: int | None = None
    """DefaultTime; None: MaxTime is the default."""


@dataclass(frozen=True)
class Limits:
    """All limits and access rules read from Slurm."""

    enforced: tuple[str, ...] = ()
    """AccountingStorageEnforce: without "limits" Slurm stores limits but does not enforce them."""
    default_accounts: dict[str, str] = field(default_factory=dict)
    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    partitions: tuple[PartitionAccess, ...] = ()
    tracked: tuple[str, ...] = ()
    """AccountingStorageTRES: Slurm counts and limits nothing else."""

    @property
    def requires_association(self) -> bool:
        """Whether users without an association are refused.

        If no users are visible at all, the site hides them (PrivateData), and none is refused.
        """
        visible = any(a.user not in ("", "root") for a in self.associations)
        return "associations" in self.enforced and visible


@dataclass(frozen=True)
class Bound:
    """The most that can be granted, and the limit behind it in words."""

    value: int
    why: str


@dataclass(frozen=True)
class Bounds:
    """The tightest bound of each kind; None is no limit."""

    cpus: Bound | None = None
    memory_mb: Bound | None = None
    minutes: Bound | None = None
    jobs: Bound | None = None
    shards: Bound | None = None
    gpus: Bound | None = None


@dataclass(frozen=True)
class GroupLimit:
    """A limit on several jobs together: those that match all of the given fields."""

    amount: Tres
    who: str
    user: str | None = None
    accounts: frozenset[str] | None = None
    qos: str | None = None
    partitions: frozenset[str] | None = None


@dataclass(frozen=True)
class UserLimits:
    """What applies to a user in a partition: association, QOS in Slurm's order, access rules."""

    user: str
    association: Association | None
    chain: tuple[Association, ...]
    """The association and the accounts above it."""
    qos: tuple[Qos, ...]
    job_qos: str
    entry: PartitionAccess
    by_partition: frozenset[str]
    """Partitions that share this one's QOS, whose group limits count jobs in all of them."""


def user_limits(user: str, partition: str, limits: Limits) -> UserLimits | None:
    """The limits of a user in a partition; None if Slurm would refuse this user's jobs there."""
    entry = next((e for e in limits.partitions if e.name == partition), PartitionAccess(partition))
    found = _association(user, partition, limits)
    if found is None and limits.requires_association:
        return None
    return _user_limits(user, entry, found, _job_qos(found), limits)


def user_limits_of_job(
    user: str, partition: str, account: str, qos: str, limits: Limits
) -> UserLimits | None:
    """The same for a job with this account and QOS.

    None if the user is not known to be allowed to use them: they may differ from sbatch's
    defaults, since the submitter can choose others.
    """
    entry = next((e for e in limits.partitions if e.name == partition), PartitionAccess(partition))
    found = _association(user, partition, limits, account)
    if "limits" in limits.enforced or limits.requires_association:
        known = {each.name for each in limits.qos}
        if found is None or qos not in known:
            return None
        if qos not in (*found.qos, found.default_qos):
            return None
    return _user_limits(user, entry, found, qos, limits)


def _user_limits(
    user: str, entry: PartitionAccess, found: Association | None, job_qos: str, limits: Limits
) -> UserLimits | None:
    account = found.account if found else ""
    if not _permits(account, entry.accounts, entry.not_accounts):
        return None
    if not _permits(job_qos, entry.allowed_qos, entry.not_qos):
        return None
    sharing = frozenset(e.name for e in limits.partitions if entry.qos and e.qos == entry.qos)
    applied = "limits" in limits.enforced
    return UserLimits(
        user,
        found if applied else None,
        tuple(_chain(found, limits)) if found and applied else (),
        tuple(_qos_in_order(entry.qos, job_qos, limits)) if applied else (),
        job_qos,
        entry,
        sharing,
    )


def _association(
    user: str, partition: str, limits: Limits, named: str | None = None
) -> Association | None:
    """The association with the named account, else with sbatch's default account."""
    account = limits.default_accounts.get(user) if named is None else named
    own = [
        a
        for a in limits.associations
        if a.user == user
        and a.account == (a.account if account is None else account)
        and a.partition in ("", partition)
    ]
    return max(own, key=lambda a: a.partition != "", default=None)


def _job_qos(association: Association | None) -> str:
    if association is None:
        return ""
    if association.default_qos:
        return association.default_qos
    return association.qos[0] if len(association.qos) == 1 else "normal"


def _permits(name: str, allowed: tuple[str, ...], denied: tuple[str, ...]) -> bool:
    if not name:  # unknown: left to Slurm
        return True
    return name in allowed if allowed else name not in denied


def _chain(association: Association, limits: Limits) -> Iterator[Association]:
    yield association
    accounts = {a.account: a for a in limits.associations if not a.user}
    above = accounts.pop(association.account, None)
    while above is not None:  # every account is removed, so a cycle ends
        yield above
        above = accounts.pop(above.parent, None)


def _qos_in_order(partition_qos: str, job_qos: str, limits: Limits) -> Iterable[Qos]:
    known = {qos.name: qos for qos in limits.qos}
    first, second = known.get(partition_qos), known.get(job_qos)
    if second is not None and "OverPartQOS" in second.flags:
        first, second = second, first
    return [qos for qos in dict.fromkeys((first, second)) if qos is not None]

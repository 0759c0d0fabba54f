"""Slurm's limits, and those that apply to one user in one partition.

Associations, QOS and partitions are read from Slurm; the portal adds no limits. If a limit of one
kind is set in several places, the first in Slurm's hierarchy applies: the partition's QOS, the
job's QOS, the user's association, its accounts ("Hierarchy" in Slurm's resource_limits page).
Limits of different kinds all apply, so the tightest one bounds a request. None means no limit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from portal.core.cluster.rules.amounts import NO_MINUTES, NO_TRES, Minutes, Tres
from portal.core.cluster.rules.reservations import NodeFeatures, Reservation
from portal.core.cluster.rules.site import Site
from portal.core.slurm_options import NO_OPTIONS, SlurmOptions

__all__ = [
    "Minutes",
    "NodeFeatures",
    "Reservation",
    "Tres",
]  # re-exported beside Limits, which consists of them


@dataclass(frozen=True)
class Association:
    """Limits of one user in one account, or (without a user) of an account."""

    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    qos: tuple[str, ...] = ()
    default_qos: str = ""
    group: Tres = NO_TRES
    """GrpTRES: all jobs of this association and its descendants together."""
    job: Tres = NO_TRES
    node: Tres = NO_TRES
    jobs: int | None = None
    """MaxJobs: running jobs of the user."""
    submitted: int | None = None
    """MaxSubmitJobs: pending and running jobs."""
    group_jobs: int | None = None
    group_submitted: int | None = None
    """GrpJobs and GrpSubmitJobs: all users of the account together."""
    minutes: int | None = None
    """MaxWall."""
    total: Minutes = NO_MINUTES
    """GrpTRESMins: the budget of all jobs together."""
    used: Minutes = NO_MINUTES
    """The use of that budget, as counted by slurmctld."""
    shares: int | None = None
    """Fairshare: the raw shares."""
    fair_share: float | None = None
    """The fair-share factor, from 0 to 1; None if it is not known."""
    description: str = ""
    """The account's description; only in rows without a user."""


@dataclass(frozen=True)
class Qos:
    """A quality of service and its limits."""

    name: str
    flags: tuple[str, ...] = ()
    group: Tres = NO_TRES
    job: Tres = NO_TRES
    node: Tres = NO_TRES
    user: Tres = NO_TRES
    account: Tres = NO_TRES
    jobs: int | None = None
    """MaxJobsPerUser: running jobs of one user."""
    jobs_of_account: int | None = None
    """MaxJobsPerAccount."""
    submitted: int | None = None
    """MaxSubmitJobsPerUser: pending and running jobs of one user."""
    submitted_of_account: int | None = None
    """MaxSubmitJobsPerAccount."""
    group_jobs: int | None = None
    group_submitted: int | None = None
    """GrpJobs and GrpSubmitJobs: all users together."""
    minutes: int | None = None
    """MaxWall."""
    least: Tres = NO_TRES
    """MinTRESPerJob."""
    total: Minutes = NO_MINUTES
    """GrpTRESMins: the budget of all jobs together."""
    used: Minutes = NO_MINUTES
    description: str = ""
    preempt: tuple[str, ...] = ()
    """The QOS whose jobs a job of this one may preempt."""
    preempt_mode: str = ""
    """PreemptMode of jobs in this QOS, in lower case; "" or "cluster": that of slurm.conf."""


@dataclass(frozen=True)
class PartitionAccess:
    """Access rules of a partition (() allows all users), and its limits on each node of a job."""

    name: str
    qos: str = ""
    accounts: tuple[str, ...] = ()
    not_accounts: tuple[str, ...] = ()
    allowed_qos: tuple[str, ...] = ()
    not_qos: tuple[str, ...] = ()
    node: Tres = NO_TRES
    default_minutes: int | None = None
    """DefaultTime; None: MaxTime is the default."""
    groups: tuple[str, ...] = ()
    """AllowGroups: the Unix groups that may use it; () for all users."""
    state: str = "UP"
    """UP, DOWN, DRAIN (runs pending jobs, accepts no new ones) or INACTIVE."""
    hidden: bool = False
    root_only: bool = False
    requires_reservation: bool = False
    """ReqResv: jobs must name a reservation."""
    oversubscribe: str = "NO"
    """OverSubscribe, as Slurm prints it: NO, YES:4, FORCE:1, EXCLUSIVE."""
    exclusive_user: bool = False
    """ExclusiveUser: a node is given to jobs of one user at a time."""
    preempt_mode: str = ""
    """PreemptMode in lower case; "": that of slurm.conf."""
    priority_tier: int = 1
    least_nodes: int = 0
    """MinNodes: a session has one node, so a partition with more refuses it."""


@dataclass(frozen=True)
class Limits:
    """All limits and access rules read from Slurm: thousands on a large site."""

    enforced: tuple[str, ...] = ()
    """AccountingStorageEnforce: without "limits" Slurm stores limits but does not enforce them."""
    default_accounts: dict[str, str] = field(default_factory=dict)
    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    partitions: tuple[PartitionAccess, ...] = ()
    tracked: tuple[str, ...] = ()
    """AccountingStorageTRES: the only resources that Slurm counts and limits."""
    reservations: tuple[Reservation, ...] = ()
    features: tuple[NodeFeatures, ...] = ()
    accounting: bool = True
    """Whether the site has accounting (AccountingStorageType); without it there are no accounts."""
    private: tuple[str, ...] = ()
    """PrivateData, in lower case: records of others that Slurm hides from ordinary users."""
    preempt_type: str = ""
    """PreemptType without its prefix: "none", "qos", "partition_prio"."""
    preempt_mode: str = ""
    """PreemptMode, in lower case."""
    usage_reset: str = ""
    """PriorityUsageResetPeriod: "NONE", "MONTHLY"."""
    decay_minutes: int | None = None
    """PriorityDecayHalfLife; None or 0: past use does not decay."""
    fenced: bool = True
    """Whether Slurm confines jobs by cgroups; without them nothing is launched."""
    site: Site = field(default_factory=Site)

    @cached_property
    def accounts(self) -> Mapping[str, Association]:
        """The rows of accounts, by name."""
        return {row.account: row for row in self.associations if not row.user}

    @cached_property
    def users(self) -> Mapping[str, Sequence[Association]]:
        """The rows of users, by user."""
        by_user: defaultdict[str, list[Association]] = defaultdict(list)
        for row in self.associations:
            by_user[row.user].append(row)
        return {user: rows for user, rows in by_user.items() if user}

    @cached_property
    def entries(self) -> Mapping[str, PartitionAccess]:
        """The access rules of partitions, by name."""
        return {entry.name: entry for entry in self.partitions}

    @cached_property
    def named_qos(self) -> Mapping[str, Qos]:
        """The QOS, by name."""
        return {qos.name: qos for qos in self.qos}

    @cached_property
    def feature_sets(self) -> Mapping[str, Mapping[tuple[str, ...], int]]:
        """For each partition, the number of its nodes with each combination of features."""
        sets: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        for row in self.features:
            sets[row.partition][row.features] += 1
        return dict(sets)

    @cached_property
    def feature_names(self) -> frozenset[str]:
        """The features of all nodes."""
        return frozenset(name for row in self.features for name in row.features)

    @cached_property
    def sharing_nodes(self) -> Mapping[str, frozenset[str]]:
        """For each partition, the partitions that have any of its nodes, and itself."""
        of_node: defaultdict[str, set[str]] = defaultdict(set)
        for row in self.features:
            of_node[row.node].add(row.partition)
        together: defaultdict[str, set[str]] = defaultdict(set)
        for partitions in {frozenset(partitions) for partitions in of_node.values()}:
            for name in partitions:
                together[name] |= partitions
        return {name: frozenset(names) for name, names in together.items()}

    @cached_property
    def requires_association(self) -> bool:
        """Whether users without an association are refused.

        If no users are visible at all, the site hides them (PrivateData), and no user is refused.
        """
        return "associations" in self.enforced and not self.users.keys() <= {"root"}


@dataclass(frozen=True)
class Bound:
    """The largest value that can be granted, and the limit behind it in words."""

    value: int
    why: str


@dataclass(frozen=True)
class Bounds:
    """The tightest bound of each kind; None means no limit."""

    cpus: Bound | None = None
    memory_mb: Bound | None = None
    minutes: Bound | None = None
    jobs: Bound | None = None
    shards: Bound | None = None
    gpus: Bound | None = None


@dataclass(frozen=True)
class GroupLimit:
    """A limit on several jobs together: those that match all fields that are set."""

    amount: Tres
    text: str
    """The limit in words, with "{amount}" for its value."""
    user: str | None = None
    accounts: frozenset[str] | None = None
    qos: str | None = None
    partitions: frozenset[str] | None = None


@dataclass(frozen=True)
class UserLimits:
    """Limits and access rules that apply to a user in a partition; QOS in Slurm's order."""

    user: str
    association: Association | None
    chain: tuple[Association, ...]
    """The association, its account and the ancestors of that account."""
    qos: tuple[Qos, ...]
    job_qos: str
    entry: PartitionAccess
    by_partition: frozenset[str]
    """Partitions with the same QOS as this one: its group limits count jobs in all of them."""


def user_limits(
    user: str, partition: str, limits: Limits, options: SlurmOptions = NO_OPTIONS
) -> UserLimits | None:
    """The limits of a user in a partition; None if Slurm would refuse this user's jobs there.

    Slurm's default account and QOS apply if the options name none.
    """
    entry = limits.entries.get(partition) or PartitionAccess(partition)
    association = _association(user, partition, limits, options.account or None)
    if association is None and limits.requires_association:
        return None
    return _user_limits(user, entry, association, options.qos or _job_qos(association), limits)


def user_limits_of_job(
    user: str, partition: str, account: str, qos: str, limits: Limits
) -> UserLimits | None:
    """The limits of a user in a partition for a job with this account and QOS.

    They may differ from sbatch's defaults, since the submitter can choose others. None if the user
    may not use them, as far as is known.
    """
    entry = limits.entries.get(partition) or PartitionAccess(partition)
    association = _association(user, partition, limits, account)
    if "limits" in limits.enforced or limits.requires_association:
        if association is None or qos not in limits.named_qos:
            return None
        if qos not in (*association.qos, association.default_qos):
            return None
    return _user_limits(user, entry, association, qos, limits)


def _user_limits(
    user: str, entry: PartitionAccess, association: Association | None, job_qos: str, limits: Limits
) -> UserLimits | None:
    account = association.account if association else ""
    if not _permits(account, entry.accounts, entry.not_accounts):
        return None
    if not _permits(job_qos, entry.allowed_qos, entry.not_qos):
        return None
    sharing = frozenset(e.name for e in limits.partitions if entry.qos and e.qos == entry.qos)
    applied = "limits" in limits.enforced
    return UserLimits(
        user,
        association if applied else None,
        tuple(_chain(association, limits)) if association and applied else (),
        tuple(_qos_in_order(entry.qos, job_qos, limits)) if applied else (),
        job_qos,
        entry,
        sharing,
    )


def _association(
    user: str, partition: str, limits: Limits, requested: str | None = None
) -> Association | None:
    """The user's association with the requested account, else with sbatch's default account."""
    account = limits.default_accounts.get(user) if requested is None else requested
    candidates = [
        a
        for a in limits.users.get(user, ())
        if a.account == (a.account if account is None else account)
        and a.partition in ("", partition)
    ]
    return max(candidates, key=lambda a: a.partition != "", default=None)


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
    yield from with_ancestors(association.account, limits)


def with_ancestors(account: str, limits: Limits) -> Iterator[Association]:
    """An account and its ancestors, nearest first, as far as they are known."""
    visited: set[str] = set()
    row = limits.accounts.get(account)
    while row is not None and row.account not in visited:  # a cycle ends
        visited.add(row.account)
        yield row
        row = limits.accounts.get(row.parent)


def _qos_in_order(partition_qos: str, job_qos: str, limits: Limits) -> Iterable[Qos]:
    by_name = limits.named_qos
    first, second = by_name.get(partition_qos), by_name.get(job_qos)
    if second is not None and "OverPartQOS" in second.flags:
        first, second = second, first
    return [qos for qos in dict.fromkeys((first, second)) if qos is not None]

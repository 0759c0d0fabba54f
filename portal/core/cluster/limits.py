"""Slurm's limits, and those that apply to one user in one partition.

Associations, QOS and partitions are read from Slurm and nothing is added here. If a limit of one
kind is set in several places, the first in Slurm's hierarchy applies: the partition's QOS, the
job's QOS, the user's association, its accounts ("Hierarchy" in Slurm's resource_limits page).
Limits of different kinds all apply, so the tightest one bounds a request. None means no limit.
"""

from __future__ import annotations

from collections import defaultdict
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
]  # re-exported: what reads Limits finds its parts here


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
    """All jobs of this association and of those below it together."""
    job: Tres = NO_TRES
    node: Tres = NO_TRES
    jobs: int | None = None
    """MaxJobs: running jobs of the user."""
    submitted: int | None = None
    """MaxSubmitJobs: waiting and running jobs."""
    group_jobs: int | None = None
    group_submitted: int | None = None
    """GrpJobs and GrpSubmitJobs: of everybody in the account together."""
    minutes: int | None = None
    """MaxWall."""
    total: Minutes = NO_MINUTES
    """GrpTRESMins: what all jobs together may have used."""
    used: Minutes = NO_MINUTES
    """What they have used of it so far, as Slurm's controller counts."""
    shares: int | None = None
    """Fairshare: the raw shares."""
    fair_share: float | None = None
    """The fair-share factor, from 0 to 1; None if it is not known."""
    description: str = ""
    """The account's description; of rows without a user only."""


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
    """MaxSubmitJobsPerUser: waiting and running jobs of one user."""
    submitted_of_account: int | None = None
    """MaxSubmitJobsPerAccount."""
    group_jobs: int | None = None
    group_submitted: int | None = None
    """GrpJobs and GrpSubmitJobs: of everybody together."""
    minutes: int | None = None
    """MaxWall."""
    least: Tres = NO_TRES
    """MinTRESPerJob."""
    total: Minutes = NO_MINUTES
    """GrpTRESMins: what all jobs together may have used."""
    used: Minutes = NO_MINUTES
    description: str = ""
    preempt: tuple[str, ...] = ()
    """The QOS whose jobs a job of this one may preempt."""
    preempt_mode: str = ""
    """PreemptMode of jobs in this QOS, in lower case: "requeue"; "" or "cluster": Slurm's."""


@dataclass(frozen=True)
class PartitionAccess:
    """Who may use a partition (() allows everyone), and its limits on each node of a job."""

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
    """AllowGroups: the Unix groups that may use it; () for everybody."""
    state: str = "UP"
    """UP, DOWN, DRAIN (runs what waits, accepts nothing) or INACTIVE."""
    hidden: bool = False
    root_only: bool = False
    requires_reservation: bool = False
    """ReqResv: jobs must name a reservation."""
    oversubscribe: str = "NO"
    """OverSubscribe, as Slurm prints it: NO, YES:4, FORCE:1, EXCLUSIVE."""
    exclusive_user: bool = False
    """ExclusiveUser: a node is given to jobs of one user at a time."""
    preempt_mode: str = ""
    """PreemptMode in lower case; "": Slurm's."""
    priority_tier: int = 1
    least_nodes: int = 0
    """MinNodes: a session has one node, so more than 1 refuses it."""


@dataclass(frozen=True)
class Limits:
    """All limits and access rules read from Slurm, which are thousands on a large site."""

    enforced: tuple[str, ...] = ()
    """AccountingStorageEnforce: without "limits" Slurm stores limits but does not enforce them."""
    default_accounts: dict[str, str] = field(default_factory=dict)
    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()
    partitions: tuple[PartitionAccess, ...] = ()
    tracked: tuple[str, ...] = ()
    """AccountingStorageTRES: Slurm counts and limits nothing else."""
    reservations: tuple[Reservation, ...] = ()
    features: tuple[NodeFeatures, ...] = ()
    accounting: bool = True
    """Whether the site has accounting (AccountingStorageType); without it there are no accounts."""
    private: tuple[str, ...] = ()
    """PrivateData, in lower case: what ordinary users do not see of others'."""
    preempt_type: str = ""
    """PreemptType without its prefix: "none", "qos", "partition_prio"."""
    preempt_mode: str = ""
    """PreemptMode, in lower case."""
    usage_reset: str = ""
    """PriorityUsageResetPeriod: "NONE", "MONTHLY"."""
    decay_minutes: int | None = None
    """PriorityDecayHalfLife; None or 0: what was used is not forgotten."""
    fenced: bool = True
    """Whether Slurm confines jobs by cgroups; without them nothing is launched."""
    site: Site = field(default_factory=Site)

    @cached_property
    def accounts(self) -> Mapping[str, Association]:
        """The rows of accounts, by name."""
        return {one.account: one for one in self.associations if not one.user}

    @cached_property
    def users(self) -> Mapping[str, Sequence[Association]]:
        """The rows of users, by user."""
        found: defaultdict[str, list[Association]] = defaultdict(list)
        for one in self.associations:
            found[one.user].append(one)
        return {user: rows for user, rows in found.items() if user}

    @cached_property
    def entries(self) -> Mapping[str, PartitionAccess]:
        """The access rules of partitions, by name."""
        return {one.name: one for one in self.partitions}

    @cached_property
    def named_qos(self) -> Mapping[str, Qos]:
        """The QOS, by name."""
        return {one.name: one for one in self.qos}

    @cached_property
    def requires_association(self) -> bool:
        """Whether users without an association are refused.

        If no users are visible at all, the site hides them (PrivateData), and none is refused.
        """
        return "associations" in self.enforced and not self.users.keys() <= {"root"}


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


def user_limits(
    user: str, partition: str, limits: Limits, options: SlurmOptions = NO_OPTIONS
) -> UserLimits | None:
    """The limits of a user in a partition; None if Slurm would refuse this user's jobs there.

    With the account and the QOS of the options; without them with Slurm's defaults.
    """
    entry = limits.entries.get(partition) or PartitionAccess(partition)
    found = _association(user, partition, limits, options.account or None)
    if found is None and limits.requires_association:
        return None
    return _user_limits(user, entry, found, options.qos or _job_qos(found), limits)


def user_limits_of_job(
    user: str, partition: str, account: str, qos: str, limits: Limits
) -> UserLimits | None:
    """The same for a job with this account and QOS.

    None if the user is not known to be allowed to use them: they may differ from sbatch's
    defaults, since the submitter can choose others.
    """
    entry = limits.entries.get(partition) or PartitionAccess(partition)
    found = _association(user, partition, limits, account)
    if "limits" in limits.enforced or limits.requires_association:
        if found is None or qos not in limits.named_qos:
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
        for a in limits.users.get(user, ())
        if a.account == (a.account if account is None else account)
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
    yield from with_ancestors(association.account, limits)


def with_ancestors(account: str, limits: Limits) -> Iterator[Association]:
    """An account and those above it, each once, as far as they are known."""
    seen: set[str] = set()
    row = limits.accounts.get(account)
    while row is not None and row.account not in seen:  # a cycle ends
        seen.add(row.account)
        yield row
        row = limits.accounts.get(row.parent)


def _qos_in_order(partition_qos: str, job_qos: str, limits: Limits) -> Iterable[Qos]:
    known = limits.named_qos
    first, second = known.get(partition_qos), known.get(job_qos)
    if second is not None and "OverPartQOS" in second.flags:
        first, second = second, first
    return [qos for qos in dict.fromkeys((first, second)) if qos is not None]

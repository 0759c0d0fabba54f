"""Limits on submitted jobs: MaxSubmitJobs, GrpSubmitJobs and the like.

Pending and running jobs count, however they were submitted. As in Slurm, a QOS overrides a limit of
the same kind that a later QOS or an association sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from portal.core.cluster.limits import Association, Limits, Qos, UserLimits
from portal.core.cluster.queue import QueuePart

CountJobs = Callable[[QueuePart], int]
"""Counts the pending and running jobs in a part of the queue."""


@dataclass(frozen=True)
class SubmitLimit:
    """One of these limits, and the jobs that it counts."""

    most: int
    source: str
    """The names of the limit and of its QOS or account in Slurm."""
    part: QueuePart | None
    """None if it is not known which jobs count."""


def too_many_jobs(
    effective: UserLimits, limits: Limits, count: int, count_jobs: CountJobs | None = None
) -> str:
    """Why Slurm would not accept `count` more jobs; "" if it would, or if that is not known."""
    for limit in submit_limits(effective, limits):
        if count > limit.most:
            return f"Slurm accepts {limit.most} at most ({limit.source})"
        queued = count_jobs(limit.part) if count_jobs and limit.part else 0
        if queued + count > limit.most:
            return _with_queued(limit, queued)
    return ""


def _with_queued(limit: SubmitLimit, queued: int) -> str:
    if limit.part and limit.part.user:
        beside = f"{queued} of yours wait or run already"
    else:  # The number of other users' jobs is not shown: a site may keep it private.
        beside = "with those of others, so many wait or run already"
    return f"Slurm accepts {limit.most} at most, and {beside} ({limit.source})"


def submit_limits(effective: UserLimits, limits: Limits) -> Iterator[SubmitLimit]:
    """The limits that apply to the next job, in the order in which Slurm checks them."""
    account = effective.association.account if effective.association else ""
    accounts = frozenset({account})
    of_group = of_account = of_user = False
    for qos in effective.qos:
        part = _part(qos, effective)
        if qos.group_submitted is not None and not of_group:
            of_group = True
            yield SubmitLimit(qos.group_submitted, f"QOS {qos.name}, GrpSubmitJobs", part)
        if qos.submitted_of_account is not None and not of_account and account:
            of_account = True
            source = f"QOS {qos.name}, MaxSubmitJobsPerAccount"
            yield SubmitLimit(qos.submitted_of_account, source, replace(part, accounts=accounts))
        if qos.submitted is not None and not of_user:
            of_user = True
            source = f"QOS {qos.name}, MaxSubmitJobsPerUser"
            yield SubmitLimit(qos.submitted, source, replace(part, user=effective.user))
    for link in effective.chain:
        if link.group_submitted is not None and not of_group:
            source = f"account {link.account}, GrpSubmitJobs"
            yield SubmitLimit(link.group_submitted, source, _of_association(link, limits))
        if link.user and link.submitted is not None and not (of_user or of_account):
            source = f"account {link.account}, MaxSubmitJobs"
            yield SubmitLimit(link.submitted, source, _of_association(link, limits))


def _part(qos: Qos, effective: UserLimits) -> QueuePart:
    sharing = effective.by_partition if qos.name == effective.entry.qos else frozenset[str]()
    return QueuePart(qos=qos.name, of_qos=sharing)


def _of_association(association: Association, limits: Limits) -> QueuePart | None:
    """The jobs of an account and its descendants, or of a user in an account.

    An association with a partition counts the jobs there. The user's other association then counts
    the remaining jobs only, which a QueuePart cannot express: None.
    """
    if not association.user:
        return QueuePart(accounts=_with_those_below(association.account, limits))
    if association.partition:
        return QueuePart(
            association.user,
            frozenset({association.account}),
            partitions=frozenset({association.partition}),
        )
    others = (a for a in limits.users[association.user] if a.account == association.account)
    if any(a.partition for a in others):
        return None
    return QueuePart(association.user, frozenset({association.account}))


def _with_those_below(account: str, limits: Limits) -> frozenset[str]:
    children: defaultdict[str, list[str]] = defaultdict(list)
    for association in limits.accounts.values():
        children[association.parent].append(association.account)
    accounts: set[str] = set()
    pending = [account]
    while pending:
        name = pending.pop()
        if name not in accounts:
            accounts.add(name)
            pending += children[name]
    return frozenset(accounts)

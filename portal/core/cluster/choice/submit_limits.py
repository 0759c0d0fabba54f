"""How many jobs of a person Slurm accepts: MaxSubmitJobs, GrpSubmitJobs and their like.

All jobs count, however they were submitted, those that wait and those that run. A QOS overrides
what a later one or an association sets of the same kind, as in Slurm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from portal.core.cluster.limits import Association, Limits, Qos, UserLimits
from portal.core.cluster.queue import QueuePart

CountJobs = Callable[[QueuePart], int]
"""How many jobs wait or run in a part of the queue."""


@dataclass(frozen=True)
class SubmitLimit:
    """One of these limits, and the jobs that it counts."""

    most: int
    where: str
    """The limit by the names that Slurm has for it."""
    part: QueuePart | None
    """None: which jobs count is not known."""


def too_many_jobs(
    own: UserLimits, limits: Limits, count: int, count_jobs: CountJobs | None = None
) -> str:
    """Why Slurm does not accept so many more jobs; "" if it does, or if it does not say."""
    for one in submit_limits(own, limits):
        if count > one.most:
            return f"Slurm accepts {one.most} at most ({one.where})"
        queued = count_jobs(one.part) if count_jobs and one.part else 0
        if queued + count > one.most:
            return _with_queued(one, queued)
    return ""


def _with_queued(one: SubmitLimit, queued: int) -> str:
    if one.part and one.part.user:
        beside = f"{queued} of yours wait or run already"
    else:  # How many others have is not told: a site may keep it private.
        beside = "with those of others, so many wait or run already"
    return f"Slurm accepts {one.most} at most, and {beside} ({one.where})"


def submit_limits(own: UserLimits, limits: Limits) -> Iterator[SubmitLimit]:
    """The limits that apply to the next job, in the order in which Slurm looks at them."""
    account = own.association.account if own.association else ""
    accounts = frozenset({account})
    of_group = of_account = of_user = False
    for qos in own.qos:
        part = _part(qos, own)
        if qos.group_submitted is not None and not of_group:
            of_group = True
            yield SubmitLimit(qos.group_submitted, f"QOS {qos.name}, GrpSubmitJobs", part)
        if qos.submitted_of_account is not None and not of_account and account:
            of_account = True
            where = f"QOS {qos.name}, MaxSubmitJobsPerAccount"
            yield SubmitLimit(qos.submitted_of_account, where, replace(part, accounts=accounts))
        if qos.submitted is not None and not of_user:
            of_user = True
            where = f"QOS {qos.name}, MaxSubmitJobsPerUser"
            yield SubmitLimit(qos.submitted, where, replace(part, user=own.user))
    for link in own.chain:
        if link.group_submitted is not None and not of_group:
            where = f"account {link.account}, GrpSubmitJobs"
            yield SubmitLimit(link.group_submitted, where, _of_association(link, limits))
        if link.user and link.submitted is not None and not (of_user or of_account):
            where = f"account {link.account}, MaxSubmitJobs"
            yield SubmitLimit(link.submitted, where, _of_association(link, limits))


def _part(qos: Qos, own: UserLimits) -> QueuePart:
    sharing = own.by_partition if qos.name == own.entry.qos else frozenset[str]()
    return QueuePart(qos=qos.name, of_qos=sharing)


def _of_association(one: Association, limits: Limits) -> QueuePart | None:
    """The jobs of an account with all below it, or of a user in an account.

    An association for one partition counts the jobs there, and a user's other one only the rest.
    """
    if not one.user:
        return QueuePart(accounts=_with_those_below(one.account, limits))
    if one.partition:
        return QueuePart(one.user, frozenset({one.account}), partitions=frozenset({one.partition}))
    others = (a for a in limits.users[one.user] if a.account == one.account)
    if any(a.partition for a in others):
        return None
    return QueuePart(one.user, frozenset({one.account}))


def _with_those_below(account: str, limits: Limits) -> frozenset[str]:
    children: defaultdict[str, list[str]] = defaultdict(list)
    for one in limits.accounts.values():
        children[one.parent].append(one.account)
    found: set[str] = set()
    rest = [account]
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            rest += children[name]
    return frozenset(found)

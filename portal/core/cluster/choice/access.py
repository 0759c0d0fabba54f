"""Who may use a partition, an account, a QOS or a reservation, as Slurm decides it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from portal.core.cluster.choice.constraint import features_in, satisfiable
from portal.core.cluster.limits import (
    Association,
    Limits,
    PartitionAccess,
    Reservation,
    line_of,
    user_limits,
)
from portal.core.slurm_options import SlurmOptions

CLOSED = {
    "DRAIN": "runs what waits there and accepts nothing new",
    "INACTIVE": "is switched off",
}
"""The states of a partition in which sbatch refuses jobs."""


def entry_of(partition: str, limits: Limits) -> PartitionAccess:
    """The access rules of a partition; those that permit everything if it has none."""
    return limits.entries.get(partition) or PartitionAccess(partition)


def partition_refusal(partition: str, limits: Limits) -> str:
    """Why nobody's session can be submitted to a partition; "" if sessions can."""
    entry = entry_of(partition, limits)
    if entry.root_only:
        return f"only root may use {partition}"
    if entry.state in CLOSED:
        return f"{partition} {CLOSED[entry.state]}; choose another resource group"
    if entry.least_nodes > 1:
        return f"jobs in {partition} need at least {entry.least_nodes} nodes, a session has one"
    return ""


def in_groups(partition: str, limits: Limits, groups: frozenset[str] | None) -> bool:
    """Whether AllowGroups permits a member of these Unix groups; None: unknown, Slurm decides."""
    allowed = entry_of(partition, limits).groups
    return groups is None or not allowed or not groups.isdisjoint(allowed)


def own_associations(user: str, limits: Limits) -> Sequence[Association]:
    """The associations of a user."""
    return limits.users.get(user, ())


def accounts_of(user: str, limits: Limits) -> list[str]:
    """The accounts of a user, each once."""
    return list(dict.fromkeys(one.account for one in own_associations(user, limits)))


def account_refusal(user: str, account: str, partition: str, limits: Limits) -> str:
    """Why a user's session in a partition cannot be charged to an account; "" if it can."""
    if not account or not limits.accounting:
        return ""
    own = [one for one in own_associations(user, limits) if one.account == account]
    if limits.requires_association and not own:
        known = ", ".join(accounts_of(user, limits))
        return f"you are not in account {account}" + (f"; choose one of: {known}" if known else "")
    if limits.requires_association and all(one.partition not in ("", partition) for one in own):
        return f"account {account} is not for {partition} with you"
    entry = entry_of(partition, limits)
    if entry.accounts and account not in entry.accounts:
        return f"{partition} is not for account {account}"
    if not entry.accounts and account in entry.not_accounts:
        return f"{partition} is closed to account {account}"
    return ""


def qos_refusal(user: str, account: str, qos: str, partition: str, limits: Limits) -> str:
    """Why a user's session with an account cannot have a QOS in a partition; "" if it can."""
    if not qos or not limits.accounting:
        return ""
    if limits.qos and qos not in limits.named_qos:
        return f"Slurm has no QOS {qos}"
    own = [
        one
        for one in own_associations(user, limits)
        if one.account == account and one.partition in ("", partition)
    ]
    if own and "qos" in limits.enforced:
        closest = max(own, key=lambda one: one.partition != "")
        if qos not in (*closest.qos, closest.default_qos):
            return f"account {account} may not use QOS {qos}"
    entry = entry_of(partition, limits)
    if entry.allowed_qos and qos not in entry.allowed_qos:
        return f"{partition} does not accept QOS {qos}"
    if not entry.allowed_qos and qos in entry.not_qos:
        return f"{partition} is closed to QOS {qos}"
    return ""


def options_in_effect(
    user: str, partition: str, options: SlurmOptions, limits: Limits
) -> tuple[str, str]:
    """The account and the QOS that a session gets: the chosen ones, else Slurm's defaults."""
    account = options.account or limits.default_accounts.get(user, "")
    if options.qos:
        return account, options.qos
    found = user_limits(user, partition, limits, SlurmOptions(account=account))
    return account, found.job_qos if found else ""


def reservation_refusal(
    one: Reservation,
    user: str,
    partition: str,
    account: str,
    qos: str,
    limits: Limits,
    groups: frozenset[str] | None = None,
    now: datetime | None = None,
) -> str:
    """Why a session cannot run in a reservation; "" if it can."""
    if now is not None and one.end is not None and one.end <= now:
        return f"reservation {one.name} is over"
    if one.partition and one.partition != partition:
        return f"reservation {one.name} is in {one.partition}, not in {partition}"
    if user in one.not_users or (one.users and user not in one.users):
        return f"reservation {one.name} is not for you"
    if one.groups and groups is not None and groups.isdisjoint(one.groups):
        return f"reservation {one.name} is for members of: {', '.join(one.groups)}"
    line = {account} | {one.parent for one in line_of(account, limits)}
    if account and one.accounts and line.isdisjoint(one.accounts):
        return f"reservation {one.name} is not for account {account}"
    if account and not line.isdisjoint(one.not_accounts):
        return f"reservation {one.name} is closed to account {account}"
    if qos and one.qos and qos not in one.qos:
        return f"reservation {one.name} does not accept QOS {qos}"
    return ""


def constraint_refusal(constraint: str, partition: str, limits: Limits) -> str:
    """Why no node of a partition has these features; "" if one has, or if none is known."""
    nodes = [one for one in limits.features if one.partition == partition]
    if not constraint or not nodes:
        return ""
    everywhere = {name for one in limits.features for name in one.features}
    if unknown := [name for name in features_in(constraint) if name not in everywhere]:
        return f"no node has the feature {unknown[0]}"
    if satisfiable(constraint, [frozenset(one.features) for one in nodes]):
        return ""
    names = sorted({name for one in nodes for name in one.features})
    known = f"its nodes have: {', '.join(names)}" if names else "its nodes have none"
    return f"no node of {partition} has these features; {known}"

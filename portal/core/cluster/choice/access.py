"""Access to partitions, accounts, QOS and reservations, decided as Slurm does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from portal.core.cluster.choice.constraint import features_in, satisfiable
from portal.core.cluster.limits import (
    Association,
    Limits,
    PartitionAccess,
    Reservation,
    user_limits,
    with_ancestors,
)
from portal.core.slurm_options import SlurmOptions

CLOSED = {
    "DRAIN": "runs what waits there and accepts nothing new",
    "INACTIVE": "is switched off",
}
"""States of a partition in which sbatch refuses jobs."""


def entry_of(partition: str, limits: Limits) -> PartitionAccess:
    """The access rules of a partition; rules that permit everything if Slurm lists none."""
    return limits.entries.get(partition) or PartitionAccess(partition)


def partition_refusal(partition: str, limits: Limits) -> str:
    """Why a partition accepts no sessions from any user; "" if it accepts them."""
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


def associations_of(user: str, limits: Limits) -> Sequence[Association]:
    """The associations of a user."""
    return limits.users.get(user, ())


def accounts_of(user: str, limits: Limits) -> list[str]:
    """The accounts of a user, without duplicates."""
    return list(dict.fromkeys(association.account for association in associations_of(user, limits)))


def account_refusal(user: str, account: str, partition: str, limits: Limits) -> str:
    """Why a user's session in a partition cannot be charged to an account; "" if it can."""
    if not account or not limits.accounting:
        return ""
    associations = [
        association
        for association in associations_of(user, limits)
        if association.account == account
    ]
    if limits.requires_association and not associations:
        choices = ", ".join(accounts_of(user, limits))
        return f"you are not in account {account}" + (
            f"; choose one of: {choices}" if choices else ""
        )
    if limits.requires_association and all(
        association.partition not in ("", partition) for association in associations
    ):
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
    associations = [
        association
        for association in associations_of(user, limits)
        if association.account == account and association.partition in ("", partition)
    ]
    if associations and "qos" in limits.enforced:
        closest = max(associations, key=lambda row: row.partition != "")
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
    effective = user_limits(user, partition, limits, SlurmOptions(account=account))
    return account, effective.job_qos if effective else ""


def reservation_refusal(
    reservation: Reservation,
    user: str,
    partition: str,
    account: str,
    qos: str,
    limits: Limits,
    groups: frozenset[str] | None = None,
    now: datetime | None = None,
) -> str:
    """Why a session cannot run in a reservation; "" if it can."""
    if now is not None and reservation.end is not None and reservation.end <= now:
        return f"reservation {reservation.name} is over"
    if reservation.partition and reservation.partition != partition:
        return f"reservation {reservation.name} is in {reservation.partition}, not in {partition}"
    if user in reservation.not_users or (reservation.users and user not in reservation.users):
        return f"reservation {reservation.name} is not for you"
    if reservation.groups and groups is not None and groups.isdisjoint(reservation.groups):
        return f"reservation {reservation.name} is for members of: {', '.join(reservation.groups)}"
    lineage = {account} | {association.parent for association in with_ancestors(account, limits)}
    if account and reservation.accounts and lineage.isdisjoint(reservation.accounts):
        return f"reservation {reservation.name} is not for account {account}"
    if account and not lineage.isdisjoint(reservation.not_accounts):
        return f"reservation {reservation.name} is closed to account {account}"
    if qos and reservation.qos and qos not in reservation.qos:
        return f"reservation {reservation.name} does not accept QOS {qos}"
    return ""


def constraint_refusal(constraint: str, partition: str, limits: Limits) -> str:
    """Why no node of a partition has these features; "" if one has, or if no node is known."""
    sets = limits.feature_sets.get(partition)
    if not constraint or not sets:
        return ""
    if unknown := [name for name in features_in(constraint) if name not in limits.feature_names]:
        return f"no node has the feature {unknown[0]}"
    if satisfiable(constraint, [frozenset(features) for features in sets]):
        return ""
    names = sorted({name for features in sets for name in features})
    available = f"its nodes have: {', '.join(names)}" if names else "its nodes have none"
    return f"no node of {partition} has these features; {available}"

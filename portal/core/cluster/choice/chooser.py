"""The choices of Slurm's options for one user, each list narrowed by the other choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from portal.core.cluster.choice.access import (
    accounts_of,
    associations_of,
    entry_of,
    in_groups,
    options_in_effect,
    partition_refusal,
    reservation_refusal,
)
from portal.core.cluster.choice.account_use import exhausted_warning, remaining
from portal.core.cluster.choice.offers import JobOffers, LaunchOptions, Offer
from portal.core.cluster.choice.preemption import preemption
from portal.core.cluster.choice.problems import whole_node_refusal
from portal.core.cluster.choice.submit_limits import CountJobs, too_many_jobs
from portal.core.cluster.effective_limits import UserPartition, partitions_for
from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Limits, Qos, Reservation, user_limits
from portal.core.cluster.rules.site import unfenced
from portal.core.slurm_options import SlurmOptions
from portal.core.units import plural, short_minutes


def launch_options(
    user: str,
    group: str | None,
    options: SlurmOptions,
    partitions: Sequence[Partition],
    limits: Limits | None,
    unix_groups: frozenset[str] | None = None,
    now: datetime | None = None,
    count_jobs: CountJobs | None = None,
) -> LaunchOptions:
    """The choices open to a user, given a partition (None: the default) and the other options.

    `count_jobs` counts jobs in the queue, for limits on submitted jobs.
    """
    if limits is None:
        return LaunchOptions(groups=tuple(partitions_for(user, partitions, None)))
    names = accounts_of(user, limits) if limits.accounting else []
    account = options.account or limits.default_accounts.get(user, "")
    groups = [
        candidate
        for candidate in _groups(user, names, partitions, limits, replace(options, account=account))
        if not (entry_of(candidate.name, limits).hidden and candidate.name != group)
        and in_groups(candidate.name, limits, unix_groups)
    ]
    chosen = _group(group, groups)
    partition = chosen.name if chosen else ""
    _, qos = options_in_effect(user, partition, options, limits)
    effective = user_limits(user, partition, limits, options) if partition else None
    return LaunchOptions(
        groups=tuple(groups),
        group=partition,
        accounts=tuple(_accounts(user, partition, names, limits)),
        account=account,
        qos=tuple(_qos(user, partition, account, limits)),
        effective_qos=qos,
        reservations=tuple(
            Offer(reservation.name, note=_span(reservation))
            for reservation in limits.reservations
            if not reservation_refusal(
                reservation, user, partition, account, qos, limits, unix_groups, now
            )
        ),
        features=tuple(_features(partition, limits)),
        whole_node=not whole_node_refusal(partition, limits),
        full=too_many_jobs(effective, limits, 1, count_jobs) if effective else "",
        warnings=tuple(_warnings(partition, account, qos, limits)),
    )


def job_offers(
    user: str,
    partitions: Sequence[Partition],
    limits: Limits | None,
    unix_groups: frozenset[str] | None = None,
    now: datetime | None = None,
) -> JobOffers:
    """The choices open to a user for a job: all that some partition and account accept."""
    if limits is None:
        return JobOffers()
    names = accounts_of(user, limits) if limits.accounting else []
    defaults = SlurmOptions(account=limits.default_accounts.get(user, ""))
    groups = [
        group.name
        for group in _groups(user, names, partitions, limits, defaults)
        if not entry_of(group.name, limits).hidden and in_groups(group.name, limits, unix_groups)
    ]
    accounts, qos = dict[str, Offer](), dict[str, Offer]()
    qos_of: dict[str, set[str]] = {name: set() for name in names}
    for options in (options for name in names or [""] for options in _choices(user, name, limits)):
        partition = next((name for name in groups if _open(user, name, options, limits)), None)
        if partition is None:
            continue
        if options.account not in accounts:
            accounts[options.account] = _account(options.account, defaults.account, limits)
        if row := limits.named_qos.get(options.qos):
            note = _about(row, partition, limits)
            qos.setdefault(options.qos, Offer(options.qos, row.description, note))
            qos_of[options.account].add(options.qos)
    pairs = [
        (group, name, options_in_effect(user, group, SlurmOptions(account=name), limits)[1])
        for group in (groups if limits.reservations else [])
        for name in accounts
    ]
    return JobOffers(
        accounts=tuple(offer for name, offer in accounts.items() if name),
        qos=tuple(qos.values()),
        reservations=tuple(
            Offer(reservation.name, note=_span(reservation))
            for reservation in limits.reservations
            if not all(
                reservation_refusal(reservation, user, *pair, limits, unix_groups, now)
                for pair in pairs
            )
        ),
        features=tuple(
            {offer.name: offer for group in groups for offer in _features(group, limits)}.values()
        ),
        qos_of={name: frozenset(allowed) for name, allowed in qos_of.items() if name in accounts},
    )


def _warnings(partition: str, account: str, qos: str, limits: Limits) -> Iterator[str]:
    warnings = (
        unfenced(limits.fenced),
        _state(partition, limits),
        exhausted_warning(account, limits),
        preemption(partition, qos, limits),
    )
    return filter(None, warnings)


def _accounts(user: str, group: str, names: Sequence[str], limits: Limits) -> Iterator[Offer]:
    """The accounts that may use a partition with their default QOS or another one."""
    default_account = limits.default_accounts.get(user, "")
    for name in names:
        if any(_open(user, group, options, limits) for options in _choices(user, name, limits)):
            yield _account(name, default_account, limits)


def _account(name: str, default_account: str, limits: Limits) -> Offer:
    return Offer(name, _description(name, limits), remaining(name, limits), name == default_account)


def _choices(user: str, account: str, limits: Limits) -> Iterator[SlurmOptions]:
    """An account with Slurm's default QOS, and with each QOS that it permits."""
    yield SlurmOptions(account=account)
    rows = (row for row in associations_of(user, limits) if row.account == account)
    for name in dict.fromkeys(name for row in rows for name in row.qos):
        yield SlurmOptions(account=account, qos=name)


def _open(user: str, partition: str, options: SlurmOptions, limits: Limits) -> bool:
    """Whether a partition accepts sessions with an account and a QOS."""
    return (
        not partition_refusal(partition, limits)
        and user_limits(user, partition, limits, options) is not None
    )


def _groups(
    user: str,
    accounts: Sequence[str],
    partitions: Sequence[Partition],
    limits: Limits,
    options: SlurmOptions,
) -> list[UserPartition]:
    """The partitions open to any account; with the chosen account's limits where it has access."""
    candidates = [
        options,
        *(choice for name in accounts or [""] for choice in _choices(user, name, limits)),
    ]
    usable: dict[str, UserPartition] = {}
    for candidate in candidates:
        missing = [partition for partition in partitions if partition.name not in usable]
        for group in partitions_for(user, missing, limits, candidate):
            if not partition_refusal(group.name, limits):
                usable[group.name] = group
    return [usable[partition.name] for partition in partitions if partition.name in usable]


def _group(name: str | None, groups: Sequence[UserPartition]) -> UserPartition | None:
    if name is None:
        return next((group for group in groups if group.default), groups[0] if groups else None)
    return next((group for group in groups if group.name == name), None)


def _description(account: str, limits: Limits) -> str:
    row = limits.accounts.get(account)
    return row.description if row else ""


def _qos(user: str, group: str, account: str, limits: Limits) -> Iterator[Offer]:
    by_name = limits.named_qos
    default_qos = options_in_effect(user, group, SlurmOptions(account=account), limits)[1]
    for options in _choices(user, account, limits):
        if options.qos in by_name and _open(user, group, options, limits):
            note = _about(by_name[options.qos], group, limits)
            yield Offer(
                options.qos,
                by_name[options.qos].description,
                note,
                default=options.qos == default_qos,
            )


def _about(qos: Qos, group: str, limits: Limits) -> str:
    """How long a session may run with a QOS, and whether it may be preempted."""
    words = [f"up to {short_minutes(qos.minutes)}"] if qos.minutes is not None else []
    if preemption(group, qos.name, limits):
        words.append("may make room for more urgent jobs")
    return ", ".join(words)


def _state(group: str, limits: Limits) -> str:
    if entry_of(group, limits).state != "DOWN":
        return ""
    return f"{group} is down: sessions in it wait until an administrator brings it back."


def _span(reservation: Reservation) -> str:
    """The time of a reservation, and its number of nodes."""
    start = (
        f"from {reservation.start:%Y-%m-%d %H:%M}"
        if reservation.start and not reservation.active
        else ""
    )
    end = f"until {reservation.end:%Y-%m-%d %H:%M} UTC" if reservation.end else ""
    nodes = plural(len(reservation.nodes), "node") if reservation.nodes else ""
    return ", ".join(filter(None, [f"{start} {end}".strip(), nodes]))


def _features(group: str, limits: Limits) -> Iterator[Offer]:
    """The features of some nodes of a partition, but not of all: those would select nothing."""
    sets = limits.feature_sets.get(group, {})
    nodes = sum(sets.values())
    for name in sorted({feature for features in sets for feature in features}):
        number = sum(count for features, count in sets.items() if name in features)
        if number < nodes:
            yield Offer(name, note=f"{number} of {plural(nodes, 'node')} in {group}")

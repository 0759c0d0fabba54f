"""Offers Slurm's own options to one person, each list narrowed by the other choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from portal.core.cluster.choice.access import (
    accounts_of,
    entry_of,
    in_groups,
    options_in_effect,
    own_associations,
    partition_refusal,
    reservation_refusal,
)
from portal.core.cluster.choice.account_use import remaining, spent
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
    """What a user may choose, given a partition (None: the default) and the other options.

    `count_jobs` counts those in the queue, for limits on submitted jobs.
    """
    if limits is None:
        return LaunchOptions(groups=tuple(partitions_for(user, partitions, None)))
    names = accounts_of(user, limits) if limits.accounting else []
    account = options.account or limits.default_accounts.get(user, "")
    groups = [
        one
        for one in _groups(user, names, partitions, limits, replace(options, account=account))
        if not (entry_of(one.name, limits).hidden and one.name != group)
        and in_groups(one.name, limits, unix_groups)
    ]
    chosen = _group(group, groups)
    place = chosen.name if chosen else ""
    _, qos = options_in_effect(user, place, options, limits)
    own = user_limits(user, place, limits, options) if place else None
    return LaunchOptions(
        groups=tuple(groups),
        group=place,
        accounts=tuple(_accounts(user, place, names, limits)),
        account=account,
        qos=tuple(_qos(user, place, account, limits)),
        one_qos=qos,
        reservations=tuple(
            Offer(one.name, note=_span(one))
            for one in limits.reservations
            if not reservation_refusal(one, user, place, account, qos, limits, unix_groups, now)
        ),
        features=tuple(_features(place, limits)),
        whole_node=not whole_node_refusal(place, limits),
        full=too_many_jobs(own, limits, 1, count_jobs) if own else "",
        warnings=tuple(_warnings(place, account, qos, limits)),
    )


def job_offers(
    user: str,
    partitions: Sequence[Partition],
    limits: Limits | None,
    unix_groups: frozenset[str] | None = None,
    now: datetime | None = None,
) -> JobOffers:
    """What a user may choose for a job: each choice that some partition and account accept."""
    if limits is None:
        return JobOffers()
    names = accounts_of(user, limits) if limits.accounting else []
    usual = SlurmOptions(account=limits.default_accounts.get(user, ""))
    groups = [
        one.name
        for one in _groups(user, names, partitions, limits, usual)
        if not entry_of(one.name, limits).hidden and in_groups(one.name, limits, unix_groups)
    ]
    accounts, qos = dict[str, Offer](), dict[str, Offer]()
    qos_of: dict[str, set[str]] = {name: set() for name in names}
    for each in (each for name in names or [""] for each in _choices(user, name, limits)):
        place = next((name for name in groups if _open(user, name, each, limits)), None)
        if place is None:
            continue
        if each.account not in accounts:
            accounts[each.account] = _account(each.account, usual.account, limits)
        if found := limits.named_qos.get(each.qos):
            qos.setdefault(
                each.qos, Offer(each.qos, found.description, _about(found, place, limits))
            )
            qos_of[each.account].add(each.qos)
    pairs = [
        (place, name, options_in_effect(user, place, SlurmOptions(account=name), limits)[1])
        for place in (groups if limits.reservations else [])
        for name in accounts
    ]
    return JobOffers(
        accounts=tuple(one for name, one in accounts.items() if name),
        qos=tuple(qos.values()),
        reservations=tuple(
            Offer(one.name, note=_span(one))
            for one in limits.reservations
            if not all(
                reservation_refusal(one, user, *pair, limits, unix_groups, now) for pair in pairs
            )
        ),
        features=tuple(
            {one.name: one for place in groups for one in _features(place, limits)}.values()
        ),
        qos_of={name: frozenset(allowed) for name, allowed in qos_of.items() if name in accounts},
    )


def _warnings(partition: str, account: str, qos: str, limits: Limits) -> Iterator[str]:
    found = (
        unfenced(limits.fenced),
        _state(partition, limits),
        spent(account, limits),
        preemption(partition, qos, limits),
    )
    return filter(None, found)


def _accounts(user: str, group: str, names: Sequence[str], limits: Limits) -> Iterator[Offer]:
    """The accounts that may use a partition, with their default QOS or another one."""
    usual = limits.default_accounts.get(user, "")
    for name in names:
        if any(_open(user, group, one, limits) for one in _choices(user, name, limits)):
            yield _account(name, usual, limits)


def _account(name: str, usual: str, limits: Limits) -> Offer:
    return Offer(name, _description(name, limits), remaining(name, limits), name == usual)


def _choices(user: str, account: str, limits: Limits) -> Iterator[SlurmOptions]:
    """An account with Slurm's default QOS, and with each that it permits."""
    yield SlurmOptions(account=account)
    rows = (one for one in own_associations(user, limits) if one.account == account)
    for name in dict.fromkeys(name for one in rows for name in one.qos):
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
    """The partitions that any account may use, with the limits of the chosen one if it may."""
    tried = [options, *(one for name in accounts or [""] for one in _choices(user, name, limits))]
    found: dict[str, UserPartition] = {}
    for each in tried:
        missing = [one for one in partitions if one.name not in found]
        for one in partitions_for(user, missing, limits, each):
            if not partition_refusal(one.name, limits):
                found[one.name] = one
    return [found[one.name] for one in partitions if one.name in found]


def _group(name: str | None, groups: Sequence[UserPartition]) -> UserPartition | None:
    if name is None:
        return next((one for one in groups if one.default), groups[0] if groups else None)
    return next((one for one in groups if one.name == name), None)


def _description(account: str, limits: Limits) -> str:
    row = limits.accounts.get(account)
    return row.description if row else ""


def _qos(user: str, group: str, account: str, limits: Limits) -> Iterator[Offer]:
    known = limits.named_qos
    usual = options_in_effect(user, group, SlurmOptions(account=account), limits)[1]
    for each in _choices(user, account, limits):
        if each.qos in known and _open(user, group, each, limits):
            note = _about(known[each.qos], group, limits)
            yield Offer(each.qos, known[each.qos].description, note, default=each.qos == usual)


def _about(qos: Qos, group: str, limits: Limits) -> str:
    """How long a session may run with a QOS, and whether it may be ended for others."""
    words = [f"up to {short_minutes(qos.minutes)}"] if qos.minutes is not None else []
    if preemption(group, qos.name, limits):
        words.append("may make room for more urgent jobs")
    return ", ".join(words)


def _state(group: str, limits: Limits) -> str:
    if entry_of(group, limits).state != "DOWN":
        return ""
    return f"{group} is down: sessions in it wait until an administrator brings it back."


def _span(one: Reservation) -> str:
    """When a reservation is, and on how many nodes."""
    start = f"from {one.start:%Y-%m-%d %H:%M}" if one.start and not one.active else ""
    end = f"until {one.end:%Y-%m-%d %H:%M} UTC" if one.end else ""
    nodes = plural(len(one.nodes), "node") if one.nodes else ""
    return ", ".join(filter(None, [f"{start} {end}".strip(), nodes]))


def _features(group: str, limits: Limits) -> Iterator[Offer]:
    """The features that only some nodes of a partition have; the others select nothing."""
    nodes = [one for one in limits.features if one.partition == group]
    for name in sorted({feature for one in nodes for feature in one.features}):
        number = sum(name in one.features for one in nodes)
        if number < len(nodes):
            yield Offer(name, note=f"{number} of {plural(len(nodes), 'node')} in {group}")

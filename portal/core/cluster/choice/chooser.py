"""Offers Slurm's own options to one person, each list narrowed by the other choices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from portal.core.cluster.choice.access import entry_of, in_groups, reservation_refusal
from portal.core.cluster.choice.account_use import remaining
from portal.core.cluster.choice.offers import LaunchOptions, Offer
from portal.core.cluster.choice.preemption import preemption
from portal.core.cluster.choice.problems import whole_node_refusal
from portal.core.cluster.effective_limits import UserPartition, partitions_for
from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Association, Limits, Reservation, user_limits
from portal.core.slurm_options import SlurmOptions
from portal.core.units import plural


def launch_options(
    user: str,
    group: str | None,
    options: SlurmOptions,
    partitions: Sequence[Partition],
    limits: Limits | None,
    unix_groups: frozenset[str] | None = None,
    now: datetime | None = None,
) -> LaunchOptions:
    """What a user may choose, given a partition (None: the default) and the other options."""
    if limits is None:
        return LaunchOptions(groups=tuple(partitions_for(user, partitions, None)))
    own = [one for one in limits.associations if one.user == user]
    names = list(dict.fromkeys(one.account for one in own))
    usual = limits.default_accounts.get(user, "")
    account = options.account or usual
    groups = _groups(user, names or [""], partitions, limits, replace(options, account=account))
    groups = [
        one
        for one in groups
        if not entry_of(one.name, limits).root_only
        and not (entry_of(one.name, limits).hidden and one.name != group)
        and in_groups(one.name, limits, unix_groups)
    ]
    chosen = _group(group, groups)
    place = chosen.name if chosen else ""
    found = user_limits(user, place, limits, replace(options, account=account))
    qos = found.job_qos if found else options.qos
    return LaunchOptions(
        groups=tuple(groups),
        group=place,
        accounts=tuple(
            Offer(name, _description(name, limits), remaining(name, limits), name == usual)
            for name in names
            if user_limits(user, place, limits, replace(options, account=name)) is not None
        ),
        account=account,
        qos=tuple(_qos(user, place, account, own, limits)),
        one_qos=qos,
        reservations=tuple(
            Offer(one.name, note=_span(one))
            for one in limits.reservations
            if not reservation_refusal(one, user, place, account, qos, limits, unix_groups, now)
        ),
        features=tuple(_features(place, limits)),
        whole_node=not whole_node_refusal(place, limits),
        warnings=tuple(filter(None, [preemption(place, qos, limits)])),
    )


def _groups(
    user: str,
    accounts: Iterable[str],
    partitions: Sequence[Partition],
    limits: Limits,
    options: SlurmOptions,
) -> list[UserPartition]:
    """The partitions that any account may use, with the limits of the chosen account first."""
    found: dict[str, UserPartition] = {}
    for account in dict.fromkeys((options.account, *accounts)):
        for one in partitions_for(user, partitions, limits, replace(options, account=account)):
            found.setdefault(one.name, one)
    return [found[one.name] for one in partitions if one.name in found]


def _group(name: str | None, groups: Sequence[UserPartition]) -> UserPartition | None:
    if name is None:
        return next((one for one in groups if one.default), groups[0] if groups else None)
    return next((one for one in groups if one.name == name), None)


def _description(account: str, limits: Limits) -> str:
    rows = (one for one in limits.associations if one.account == account and not one.user)
    return next((one.description for one in rows), "")


def _qos(
    user: str, group: str, account: str, own: Sequence[Association], limits: Limits
) -> Iterable[Offer]:
    known = {one.name: one for one in limits.qos}
    usual = user_limits(user, group, limits, SlurmOptions(account=account))
    names = dict.fromkeys(
        name for one in own if one.account == account for name in one.qos if name in known
    )
    for name in names:
        if user_limits(user, group, limits, SlurmOptions(account=account, qos=name)):
            default = usual is not None and usual.job_qos == name
            yield Offer(name, known[name].description, default=default)


def _span(one: Reservation) -> str:
    """When a reservation is, and on how many nodes."""
    start = f"from {one.start:%Y-%m-%d %H:%M}" if one.start and not one.active else ""
    end = f"until {one.end:%Y-%m-%d %H:%M} UTC" if one.end else ""
    nodes = plural(len(one.nodes), "node") if one.nodes else ""
    return ", ".join(filter(None, [f"{start} {end}".strip(), nodes]))


def _features(group: str, limits: Limits) -> Iterable[Offer]:
    nodes = [one for one in limits.features if one.partition == group]
    for name in sorted({feature for one in nodes for feature in one.features}):
        number = sum(name in one.features for one in nodes)
        yield Offer(name, note=f"{plural(number, 'node')} in {group}")

"""What Slurm's options offer to a person, and what is free with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from portal.core.auth.person import Person
from portal.core.cluster.choice.offers import LaunchOptions, Offer
from portal.core.cluster.effective_limits import UserPartition
from portal.core.cluster.meters import PartitionUsage
from portal.core.slurm_options import SlurmOptions
from portal.web.context import services
from portal.web.pages.launch.slurm_fields import NAMED, chosen_options

MOST_GROUPS = 20
"""Partitions, and accounts in each, whose choices are proposed for jobs."""


def offers_to(person: Person, values: Mapping[str, str]) -> tuple[LaunchOptions, SlurmOptions]:
    """What may be chosen given a form's values, and the options that are then in effect.

    Where Slurm's default account or QOS is refused, the first one that is not is in effect.
    """
    options, group = chosen_options(values), values.get("resource_group") or None
    offered = services().cluster.launch_options(person.name, group, options, services().clock())
    if account := _instead_of_default(options.account, offered.accounts):
        options = replace(options, account=account)
        offered = services().cluster.launch_options(person.name, group, options, services().clock())
    if qos := _instead_of_default(options.qos, offered.qos):
        options = replace(options, qos=qos)
        offered = services().cluster.launch_options(person.name, group, options, services().clock())
    return offered, options


def only_choice(offered: LaunchOptions, options: SlurmOptions) -> dict[str, str]:
    """The account and QOS to be sent by a form that names none, since Slurm refuses its default."""
    chosen = (
        ("account", options.account, offered.accounts),
        ("qos", options.qos, offered.qos),
    )
    return {
        name: value
        for name, value, offers in chosen
        if value and not any(one.default for one in offers)
    }


def uses_of(
    person: Person, groups: Iterable[UserPartition], options: SlurmOptions
) -> dict[str, PartitionUsage]:
    """What a person holds and could get in each group, by its name.

    With the options; where they are refused, with the first account that is not.
    """
    cluster, found = services().cluster, {}
    for group in groups:
        use = cluster.usage_for(person.name, group.name, options)
        if use is None:
            offered, instead = offers_to(person, {"resource_group": group.name})
            use = cluster.usage_for(person.name, group.name, instead) if offered.group else None
        if use is not None:
            found[group.name] = use
    return found


@dataclass(frozen=True)
class Proposals:
    """What is proposed in the fields of a job's form."""

    offers: Mapping[str, Sequence[Offer]] = field(default_factory=dict)
    """All that a person may choose in some partition, by the option's name."""
    qos_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The QOS that each account may use in some partition."""

    def for_account(self, account: str) -> Mapping[str, Sequence[Offer]]:
        """The offers, with only the QOS of this account if it is one of the person's."""
        if account not in self.qos_of:
            return self.offers
        allowed = self.qos_of[account]
        return {**self.offers, "qos": [one for one in self.offers["qos"] if one.name in allowed]}

    def accounts_with(self, qos: str) -> list[str]:
        """The accounts that may use a QOS."""
        return [account for account, allowed in self.qos_of.items() if qos in allowed]


def proposals(person: Person) -> Proposals:
    """What to propose for a job.

    Its partition may be in the script, so that only account and QOS narrow each other.
    """
    cluster = services().cluster
    found: dict[str, dict[str, Offer]] = {name: {} for name in NAMED}
    qos_of: dict[str, set[str]] = {}
    groups = [group.name for group in cluster.launch_options(person.name).groups]
    for group in groups[:MOST_GROUPS]:
        accounts = cluster.launch_options(person.name, group).accounts
        for account in [one.name for one in accounts][:MOST_GROUPS] or [""]:
            here = cluster.launch_options(person.name, group, SlurmOptions(account))
            qos_of.setdefault(account, set()).update(one.name for one in here.qos)
            lists = (here.accounts, here.qos, here.reservations, here.features)
            for known, offered in zip(found.values(), lists, strict=True):
                for one in offered:
                    known.setdefault(one.name, one)
    return Proposals(
        {name: list(known.values()) for name, known in found.items()},
        {name: frozenset(allowed) for name, allowed in qos_of.items() if name},
    )


def _instead_of_default(chosen: str, offered: tuple[Offer, ...]) -> str:
    if chosen or not offered or any(one.default for one in offered):
        return ""
    return offered[0].name

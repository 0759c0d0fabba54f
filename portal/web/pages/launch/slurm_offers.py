"""The Slurm options offered to a user, and the resources free with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from portal.core.auth.person import Person
from portal.core.cluster.choice.offers import LaunchOptions, Offer
from portal.core.cluster.effective_limits import UserPartition
from portal.core.cluster.meters import PartitionUsage
from portal.core.slurm_options import SlurmOptions
from portal.web.context import cluster_view, services
from portal.web.pages.launch.slurm_fields import chosen_options


def offers_to(person: Person, values: Mapping[str, str]) -> tuple[LaunchOptions, SlurmOptions]:
    """The options offered for a form's values, and the options in effect.

    Where Slurm's default account or QOS is refused, the first accepted one is in effect.
    """
    options, group = chosen_options(values), values.get("resource_group") or None
    offered = cluster_view().launch_options(person.name, group, options, services().clock())
    if account := _instead_of_default(options.account, offered.accounts):
        options = replace(options, account=account)
        offered = cluster_view().launch_options(person.name, group, options, services().clock())
    if qos := _instead_of_default(options.qos, offered.qos):
        options = replace(options, qos=qos)
        offered = cluster_view().launch_options(person.name, group, options, services().clock())
    return offered, options


def only_choice(offered: LaunchOptions, options: SlurmOptions) -> dict[str, str]:
    """The account and QOS for a form that names none, where Slurm refuses its defaults."""
    chosen = (
        ("account", options.account, offered.accounts),
        ("qos", options.qos, offered.qos),
    )
    return {
        name: value
        for name, value, offers in chosen
        if value and not any(offer.default for offer in offers)
    }


def uses_of(
    person: Person, groups: Iterable[UserPartition], options: SlurmOptions
) -> dict[str, PartitionUsage]:
    """The user's usage of each group with the options, by the group's name.

    Where the options are refused, with the first account that is accepted.
    """
    cluster, uses = cluster_view(), {}
    for group in groups:
        use = cluster.usage_for(person.name, group.name, options)
        if use is None:
            offered, instead = offers_to(person, {"resource_group": group.name})
            use = cluster.usage_for(person.name, group.name, instead) if offered.group else None
        if use is not None:
            uses[group.name] = use
    return uses


def _instead_of_default(chosen: str, offered: tuple[Offer, ...]) -> str:
    if chosen or not offered or any(offer.default for offer in offered):
        return ""
    return offered[0].name

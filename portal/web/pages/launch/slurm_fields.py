"""The wizard's fields for Slurm's own options: account, QOS, reservation, features, whole node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from portal.core.cluster.choice.offers import LaunchOptions, Offer
from portal.core.launch.templates import FIELD as TEMPLATE
from portal.core.launch.templates import Template
from portal.core.slurm_options import SlurmOptions

EXCLUSIVE = "exclusive"
OFF = "off"
"""The value of EXCLUSIVE that refuses a template's; "" leaves it to the template."""
NAMED = {
    "account": "Account",
    "qos": "QOS",
    "reservation": "Reservation",
    "constraint": "Node features",
}
LABELS = NAMED | {EXCLUSIVE: "Whole node"}
HINTS = {
    "account": "Which project is charged.",
    "qos": "Which rules apply: how much, for how long, and how soon.",
    "reservation": "Nodes that are kept free for a group or a course.",
}
_NONE = {"reservation": "None"}
"""The words of a menu for no choice; elsewhere Slurm chooses."""


def chosen_options(values: Mapping[str, str]) -> SlurmOptions:
    """The options as they are entered."""
    named = {name: values.get(name, "") for name in NAMED}
    return SlurmOptions(**named, exclusive=values.get(EXCLUSIVE) not in (None, "", OFF))


@dataclass(frozen=True)
class Item:
    """One line of a menu."""

    value: str
    text: str
    chosen: bool


@dataclass(frozen=True)
class SlurmMenu:
    """A menu for one of the options."""

    name: str
    label: str
    hint: str
    items: Sequence[Item]
    note: str = ""
    """What a person should know about the choice that is made."""


@dataclass(frozen=True)
class SlurmFields:
    """What the form asks of Slurm's options: nothing of which there is just one."""

    menus: Sequence[SlurmMenu]
    features: Sequence[Offer]
    constraint: bool
    """Whether features of nodes are asked for."""
    whole_node: bool
    """Whether the box for the whole node is shown."""
    ticked: bool
    """Whether it is ticked: by the person, else by the chosen template."""
    warnings: Sequence[str]

    @property
    def asked(self) -> bool:
        """Whether there is anything to ask."""
        return bool(self.menus or self.constraint or self.whole_node)


def slurm_fields(
    offered: LaunchOptions,
    values: Mapping[str, str],
    errors: Mapping[str, str],
    templates: Sequence[Template] = (),
) -> SlurmFields:
    """The fields for what is offered, and for what was entered or refused although it is not.

    One account or QOS alone is asked for, too, if it is not Slurm's default: it has to be named.
    Whatever is offered, the whole node of a template can be undone.
    """
    lists = {
        "account": (offered.accounts, 1),
        "qos": (offered.qos, 1),
        "reservation": (offered.reservations, 0),
    }
    menus = [
        _menu(name, offers, values.get(name, ""))
        for name, (offers, fixed) in lists.items()
        if len(offers) > fixed
        or values.get(name)
        or name in errors
        or (fixed and offers and not offers[0].default)  # Slurm refuses its default here
    ]
    return SlurmFields(
        menus=menus,
        features=offered.features,
        constraint=bool(offered.features or values.get("constraint") or "constraint" in errors),
        whole_node=(bool(offered.accounts) and offered.whole_node)
        or bool(values.get(EXCLUSIVE))
        or EXCLUSIVE in errors
        or any(template.exclusive for template in templates),
        ticked=_ticked(values, templates),
        warnings=[*filter(None, [offered.full]), *offered.warnings],
    )


def _ticked(values: Mapping[str, str], templates: Sequence[Template]) -> bool:
    if entered := values.get(EXCLUSIVE):
        return entered != OFF
    chosen = values.get(TEMPLATE)
    return any(one.exclusive for one in templates if one.name == chosen)


def _menu(name: str, offers: Sequence[Offer], value: str) -> SlurmMenu:
    usual = next((one for one in offers if one.default), None)
    known = {one.name for one in offers}
    # Slurm refuses its default if that is not among the offers.
    refused = offers and name not in _NONE
    items = [] if usual or refused else [Item("", _NONE.get(name, "Slurm's default"), not value)]
    for one in offers:
        is_chosen = one.name == value or (one.default and not value)
        # The default is not sent: it is Slurm's, which may change it.
        items.append(Item("" if one.default else one.name, _text(one), is_chosen))
    if value and value not in known:
        items.append(Item(value, f"{value} (not open to you with these choices)", True))
    taken = next((one for one in offers if one.name == value), usual)
    return SlurmMenu(name, NAMED[name], HINTS[name], items, taken.note if taken else "")


def _text(offer: Offer) -> str:
    # sacctmgr writes the name as the description if none is given.
    title = offer.title if offer.title.lower() != offer.name.lower() else ""
    words = f"{offer.name}: {title}" if title else offer.name
    return f"{words} (default)" if offer.default else words

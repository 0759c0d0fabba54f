"""The wizard's fields for Slurm's options: account, QOS, reservation, features, whole node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from portal.core.cluster.choice.offers import LaunchOptions, Offer
from portal.core.launch.templates import FIELD as TEMPLATE
from portal.core.launch.templates import Template
from portal.core.slurm_options import SlurmOptions

EXCLUSIVE = "exclusive"
OFF = "off"
"""The value of EXCLUSIVE that overrides a template's; "" leaves it to the template."""
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
"""The text for no choice; other menus show Slurm's default."""


def chosen_options(values: Mapping[str, str]) -> SlurmOptions:
    """The entered options."""
    options = {name: values.get(name, "") for name in NAMED}
    return SlurmOptions(**options, exclusive=values.get(EXCLUSIVE) not in (None, "", OFF))


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
    """A note about the current choice."""


@dataclass(frozen=True)
class SlurmFields:
    """The fields for Slurm's options; without those that have a single choice."""

    menus: Sequence[SlurmMenu]
    features: Sequence[Offer]
    constraint: bool
    """Whether the field for features of nodes is shown."""
    whole_node: bool
    """Whether the box for the whole node is shown."""
    ticked: bool
    """Whether it is ticked: by the user, else by the chosen template."""
    warnings: Sequence[str]

    @property
    def shown(self) -> bool:
        """Whether any field is shown."""
        return bool(self.menus or self.constraint or self.whole_node)


def slurm_fields(
    offered: LaunchOptions,
    values: Mapping[str, str],
    errors: Mapping[str, str],
    templates: Sequence[Template] = (),
) -> SlurmFields:
    """The fields for the offered options, and for entered or rejected ones that are not offered.

    A single account or QOS that is not Slurm's default also has a field, since it must be named.
    The whole node of a template can always be unticked.
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
    return any(template.exclusive for template in templates if template.name == chosen)


def _menu(name: str, offers: Sequence[Offer], value: str) -> SlurmMenu:
    default = next((offer for offer in offers if offer.default), None)
    names = {offer.name for offer in offers}
    # Slurm refuses its default if that is not among the offers.
    refused = offers and name not in _NONE
    items = [] if default or refused else [Item("", _NONE.get(name, "Slurm's default"), not value)]
    for offer in offers:
        is_chosen = offer.name == value or (offer.default and not value)
        # The default is not sent, so that a later change of Slurm's default applies.
        items.append(Item("" if offer.default else offer.name, _text(offer), is_chosen))
    if value and value not in names:
        items.append(Item(value, f"{value} (not open to you with these choices)", True))
    selected = next((offer for offer in offers if offer.name == value), default)
    return SlurmMenu(name, NAMED[name], HINTS[name], items, selected.note if selected else "")


def _text(offer: Offer) -> str:
    # sacctmgr writes the name as the description if none is given.
    title = offer.title if offer.title.lower() != offer.name.lower() else ""
    words = f"{offer.name}: {title}" if title else offer.name
    return f"{words} (default)" if offer.default else words

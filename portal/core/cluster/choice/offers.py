"""Choices of Slurm's options, as the launch pages and the REST API offer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from portal.core.cluster.effective_limits import UserPartition


@dataclass(frozen=True)
class Offer:
    """One account, QOS, reservation or feature that a person may choose."""

    name: str
    title: str = ""
    """Its description in Slurm; "" if it has none."""
    note: str = ""
    """Remaining budget, time span or nodes, to be shown with the choice."""
    default: bool = False
    """Whether Slurm takes it if nothing is chosen."""


@dataclass(frozen=True)
class LaunchOptions:
    """The choices open to a person, given the current ones.

    Every list holds only values that Slurm accepts together with the other choices in effect; pages
    leave out a list of fewer than two values.
    """

    groups: tuple[UserPartition, ...] = ()
    """Partitions that some account of the person may use, with the limits of the choice."""
    group: str = ""
    """The partition in effect: the chosen one, else the default; "" if there is none."""
    accounts: tuple[Offer, ...] = ()
    account: str = ""
    """The account in effect: the chosen one, else Slurm's default; "" without accounting."""
    qos: tuple[Offer, ...] = ()
    effective_qos: str = ""
    """The QOS in effect."""
    reservations: tuple[Offer, ...] = ()
    features: tuple[Offer, ...] = ()
    whole_node: bool = True
    """Whether a whole node may be requested: not with OverSubscribe=FORCE."""
    full: str = ""
    """Why Slurm accepts no further job with this choice now; "" if it does."""
    warnings: tuple[str, ...] = ()
    """Sentences about the choice, for example that its sessions can be preempted."""


@dataclass(frozen=True)
class JobOffers:
    """The choices open to a person for a job in any partition: its script may name one."""

    accounts: tuple[Offer, ...] = ()
    qos: tuple[Offer, ...] = ()
    reservations: tuple[Offer, ...] = ()
    features: tuple[Offer, ...] = ()
    qos_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The QOS that each account may use in some partition."""

    @property
    def by_option(self) -> Mapping[str, Sequence[Offer]]:
        """The lists by the names of the fields."""
        return {
            "account": self.accounts,
            "qos": self.qos,
            "reservation": self.reservations,
            "constraint": self.features,
        }

    def for_account(self, account: str) -> JobOffers:
        """These offers with only the QOS of this account; unchanged if it is not the person's."""
        if account not in self.qos_of:
            return self
        allowed = self.qos_of[account]
        return replace(self, qos=tuple(offer for offer in self.qos if offer.name in allowed))

    def accounts_with(self, qos: str) -> list[str]:
        """The accounts that may use a QOS."""
        return [account for account, allowed in self.qos_of.items() if qos in allowed]

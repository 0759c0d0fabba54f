"""What the launch pages and the REST API offer of Slurm's own options."""

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
    """What a person should know before choosing it: what is left, until when, on which nodes."""
    default: bool = False
    """Whether Slurm takes it if nothing is chosen."""


@dataclass(frozen=True)
class LaunchOptions:
    """What a person may choose, given what has been chosen so far.

    Every list holds only what Slurm accepts together with the other choices in effect; a list with
    one element or none is not asked for.
    """

    groups: tuple[UserPartition, ...] = ()
    """Partitions that some account of the person may use, with the limits of the choice."""
    group: str = ""
    """The partition in effect: the chosen one, else the default; "" if there is none."""
    accounts: tuple[Offer, ...] = ()
    account: str = ""
    """The account in effect: the chosen one, else Slurm's default; "" without accounting."""
    qos: tuple[Offer, ...] = ()
    one_qos: str = ""
    """The QOS in effect."""
    reservations: tuple[Offer, ...] = ()
    features: tuple[Offer, ...] = ()
    whole_node: bool = True
    """Whether a whole node may be asked for: not where partitions share nodes by force."""
    full: str = ""
    """Why Slurm accepts no further job with this choice now; "" if it does."""
    warnings: tuple[str, ...] = ()
    """What a person should know about the choice: that its sessions can be preempted, for one."""


@dataclass(frozen=True)
class JobOffers:
    """All that a person may choose for a job in some partition, which its script may name."""

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
        """The same, with only the QOS of this account if it is one of the person's."""
        if account not in self.qos_of:
            return self
        allowed = self.qos_of[account]
        return replace(self, qos=tuple(one for one in self.qos if one.name in allowed))

    def accounts_with(self, qos: str) -> list[str]:
        """The accounts that may use a QOS."""
        return [account for account, allowed in self.qos_of.items() if qos in allowed]

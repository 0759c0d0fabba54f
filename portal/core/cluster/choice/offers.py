"""What the launch pages and the REST API offer of Slurm's own options."""

from __future__ import annotations

from dataclasses import dataclass

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

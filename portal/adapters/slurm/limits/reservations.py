"""scontrol's reservations: arguments and parser."""

from __future__ import annotations

from collections.abc import Iterator

from portal.adapters.slurm.commands import read_time
from portal.adapters.slurm.limits.words import names, record, word
from portal.core.cluster.limits import Reservation
from portal.node.common.node_lists import expand_nodes


def reservations_argv() -> list[str]:
    """Every reservation that the reader may see, one per line."""
    return ["scontrol", "--oneliner", "show", "reservation"]


def reservations_parse(text: str) -> Iterator[Reservation]:
    """Parse scontrol's lines; other lines, such as that there are no reservations, are skipped."""
    for line in text.split("\n"):
        fields = record(line)
        if "ReservationName" in fields:
            yield _reservation(fields)


def _reservation(fields: dict[str, str]) -> Reservation:
    users, not_users = _split(fields.get("Users", ""))
    accounts, not_accounts = _split(fields.get("Accounts", ""))
    return Reservation(
        name=fields["ReservationName"],
        start=read_time(fields.get("StartTime", "")),
        end=read_time(fields.get("EndTime", "")),
        active=fields.get("State", "") == "ACTIVE",
        partition=word(fields.get("PartitionName", ""))
        or _only_name(fields.get("AllowedPartitions", "")),
        nodes=_nodes(fields.get("Nodes", "")),
        users=users,
        not_users=not_users,
        accounts=accounts,
        not_accounts=not_accounts,
        groups=names(fields.get("Groups", "")),
        qos=names(fields.get("AllowedQOS", fields.get("QOS", ""))),
        features=word(fields.get("Features", "")),
        flags=names(fields.get("Flags", "")),
    )


def _split(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The permitted names, and the denied ones, which have a minus sign."""
    entries = names(text)
    return (
        tuple(name for name in entries if not name.startswith("-")),
        tuple(name[1:] for name in entries if name.startswith("-")),
    )


def _only_name(text: str) -> str:
    """The allowed partition (since 25.11) if there is only one; else ""."""
    entries = names(text)
    return entries[0] if len(entries) == 1 else ""


def _nodes(text: str) -> tuple[str, ...]:
    try:
        return expand_nodes(word(text))
    except ValueError:  # licences or a burst buffer alone, or more nodes than can be shown
        return ()

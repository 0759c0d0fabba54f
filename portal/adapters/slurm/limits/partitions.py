"""scontrol's partitions and sinfo's features of nodes: arguments and parsers."""

from __future__ import annotations

from collections.abc import Iterator

from portal.adapters.slurm.commands import SEPARATOR, UnexpectedOutput, amount, parse_minutes
from portal.adapters.slurm.limits.words import names, number, record, word
from portal.core.cluster.limits import NodeFeatures, PartitionAccess

_FEATURES = ("NodeHost", "Partition", "Features_act")


def entries_argv() -> list[str]:
    """Every partition, one per line."""
    return ["scontrol", "--oneliner", "--all", "show", "partition"]


def features_argv() -> list[str]:
    """The active features of every node, once for each of its partitions."""
    fields = ",".join(f"{field}:{SEPARATOR}" for field in _FEATURES)
    return ["sinfo", "--noheader", "--all", "--Node", f"--Format={fields}"]


def entries_parse(text: str) -> Iterator[PartitionAccess]:
    """Parse scontrol's lines; raises UnexpectedOutput."""
    for line in filter(str.strip, text.split("\n")):
        if line.startswith("No partitions"):
            continue
        fields = record(line)
        if "PartitionName" not in fields:
            raise UnexpectedOutput(f"scontrol: no partition in {line!r}")
        yield _entry(fields)


def _entry(fields: dict[str, str]) -> PartitionAccess:
    node = [fields.get("MaxCPUsPerNode", ""), fields.get("MaxMemPerNode", "")]
    # Slurm 26.05 has one field, whose NODE replaces OverSubscribe=EXCLUSIVE.
    exclusive = names(fields.get("Exclusive", ""))
    return PartitionAccess(
        name=fields["PartitionName"],
        qos=word(fields.get("QoS", "")),
        accounts=_only(fields.get("AllowAccounts", "ALL")),
        not_accounts=names(fields.get("DenyAccounts", "")),
        allowed_qos=_only(fields.get("AllowQos", "ALL")),
        not_qos=names(fields.get("DenyQos", "")),
        node=amount(f"cpu={node[0]},mem={node[1]}"),
        # NONE stands for MaxTime, which also bounds UNLIMITED.
        default_minutes=parse_minutes(fields.get("DefaultTime", "NONE")),
        groups=_only(fields.get("AllowGroups", "ALL")),
        state=fields.get("State", "UP"),
        hidden=_yes(fields, "Hidden"),
        root_only=_yes(fields, "RootOnly"),
        requires_reservation=_yes(fields, "ReqResv"),
        oversubscribe="EXCLUSIVE" if "NODE" in exclusive else fields.get("OverSubscribe", "NO"),
        exclusive_user=_yes(fields, "ExclusiveUser") or "USER" in exclusive,
        preempt_mode=fields.get("PreemptMode", "").lower(),
        priority_tier=number(fields.get("PriorityTier", "")) or 1,
        least_nodes=number(fields.get("MinNodes", "")) or 0,
    )


def _yes(fields: dict[str, str], name: str) -> bool:
    return fields.get(name, "NO") == "YES"


def _only(text: str) -> tuple[str, ...]:
    """The names of an Allow list; () for ALL."""
    return () if text.upper() == "ALL" else names(text)


def features_parse(text: str) -> Iterator[NodeFeatures]:
    """Parse sinfo's lines; raises UnexpectedOutput."""
    for line in filter(str.strip, text.split("\n")):
        fields = line.split(SEPARATOR)
        if len(fields) != len(_FEATURES) + 1:
            raise UnexpectedOutput(f"sinfo: {len(fields)} fields in {line!r}")
        node, partition, features = map(str.strip, fields[:-1])
        yield NodeFeatures(node, partition.rstrip("*"), names(features))

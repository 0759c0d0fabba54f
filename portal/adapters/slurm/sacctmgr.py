"""Commands that read Slurm's limits: their arguments, and the parsers of their output.

sacctmgr has the limits, scontrol the access to partitions and whether limits are enforced. An
unprivileged account may read all of them, unless the site hides them (PrivateData). The fields
exist in Slurm 22.05 to 26.05; sacctmgr already applies accounts' Max limits to their users.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from portal.adapters.slurm.commands import UnexpectedOutput, amount, parse_minutes
from portal.core.cluster.limits import Association, Limits, PartitionAccess, Qos

_ASSOCIATION_FIELDS = (
    "Cluster", "Account", "User", "Partition", "ParentName", "QOS", "DefaultQOS",
    "GrpTRES", "MaxTRES", "MaxTRESPerNode", "MaxJobs", "MaxWall",
)  # fmt: skip
_QOS_FIELDS = (
    "Name", "Flags", "GrpTRES", "MaxTRESPerJob", "MaxTRESPerNode", "MaxTRESPerUser",
    "MaxTRESPerAccount", "MaxJobsPerUser", "MaxWall",
)  # fmt: skip
_USER_FIELDS = ("User", "DefaultAccount")


def _show(what: str, fields: Sequence[str]) -> list[str]:
    # sacctmgr has no other separator; no name in Slurm's accounting may contain it.
    return ["sacctmgr", "--noheader", "--parsable2", "show", what, f"format={','.join(fields)}"]


def associations_argv() -> list[str]:
    """Every association of every account and user."""
    return _show("assoc", _ASSOCIATION_FIELDS)


def qos_argv() -> list[str]:
    """Every quality of service."""
    return _show("qos", _QOS_FIELDS)


def users_argv() -> list[str]:
    """Every user's default account."""
    return _show("user", _USER_FIELDS)


def entries_argv() -> list[str]:
    """Every partition, one per line."""
    return ["scontrol", "--oneliner", "--all", "show", "partition"]


def config_argv() -> list[str]:
    """Slurm's own configuration."""
    return ["scontrol", "show", "config"]


@dataclass(frozen=True)
class Printed:
    """What the five commands printed."""

    config: str
    associations: str
    qos: str
    users: str
    entries: str


def limits(printed: Printed) -> Limits:
    """Combine the outputs; associations of other clusters are ignored."""
    cluster = _setting(printed.config, "ClusterName")
    enforced = _setting(printed.config, "AccountingStorageEnforce")
    users = _lines("sacctmgr", printed.users, _USER_FIELDS)
    found = _lines("sacctmgr", printed.associations, _ASSOCIATION_FIELDS)
    return Limits(
        enforced=_names(enforced),
        default_accounts={name: account for name, account in users if account},
        associations=tuple(_association(line) for line in found if line[0] == cluster),
        qos=tuple(map(_qos, _lines("sacctmgr", printed.qos, _QOS_FIELDS))),
        partitions=tuple(_entries(printed.entries)),
        tracked=_names(_setting(printed.config, "AccountingStorageTRES")),
    )


def _setting(config: str, name: str) -> str:
    match = re.search(rf"^{name}\s*=\s*(\S*)", config, re.MULTILINE)
    if match is None:
        raise UnexpectedOutput(f"scontrol: no {name}")
    return match[1]


def _lines(command: str, text: str, fields: Sequence[str]) -> Iterator[list[str]]:
    for line in filter(str.strip, text.split("\n")):
        values = [value.strip() for value in line.split("|")]
        if len(values) != len(fields):
            raise UnexpectedOutput(f"{command}: {len(values)} fields in {line!r}")
        yield values


def _association(line: Sequence[str]) -> Association:
    _cluster, account, user, partition, parent, qos, default_qos = line[:7]
    group, job, node, jobs, minutes = line[7:]
    return Association(
        account=account,
        user=user,
        partition=partition,
        parent=parent,
        qos=_names(qos),
        default_qos=default_qos,
        group=amount(group),
        job=amount(job),
        node=amount(node),
        jobs=_number(jobs),
        minutes=parse_minutes(minutes),
    )


def _qos(line: Sequence[str]) -> Qos:
    name, flags, group, job, node, user, account, jobs, minutes = line
    return Qos(
        name=name,
        flags=_names(flags),
        group=amount(group),
        job=amount(job),
        node=amount(node),
        user=amount(user),
        account=amount(account),
        jobs=_number(jobs),
        minutes=parse_minutes(minutes),
    )


def _entries(text: str) -> Iterator[PartitionAccess]:
    for line in filter(str.strip, text.split("\n")):
        fields = dict(word.partition("=")[::2] for word in line.split())
        if "PartitionName" not in fields:
            raise UnexpectedOutput(f"scontrol: no partition in {line!r}")
        node = [fields.get("MaxCPUsPerNode", ""), fields.get("MaxMemPerNode", "")]
        yield PartitionAccess(
            name=fields["PartitionName"],
            qos="" if fields.get("QoS", "N/A") == "N/A" else fields["QoS"],
            accounts=_only(fields.get("AllowAccounts")),
            not_accounts=_names(fields.get("DenyAccounts", "")),
            allowed_qos=_only(fields.get("AllowQos")),
            not_qos=_names(fields.get("DenyQos", "")),
            node=amount(f"cpu={node[0]},mem={node[1]}"),
            # NONE stands for MaxTime, which also bounds UNLIMITED.
            default_minutes=parse_minutes(fields.get("DefaultTime", "NONE")),
        )


def _only(text: str | None) -> tuple[str, ...]:
    """The names of an Allow list; () for ALL."""
    return () if text in (None, "ALL", "(null)") else _names(text or "")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None

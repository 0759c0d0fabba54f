"""sacctmgr's associations, accounts and users: arguments and parsers.

The fields exist in Slurm 22.05 to 26.05; sacctmgr already applies accounts' Max limits to their
users. Descriptions are a separate query, since they may contain any character.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from portal.adapters.slurm.commands import amount, parse_minutes
from portal.adapters.slurm.limits.words import minutes_of, names, number, rows, show
from portal.core.cluster.limits import Association

_FIELDS = (
    "Cluster", "Account", "User", "Partition", "ParentName", "QOS", "DefaultQOS",
    "GrpTRES", "MaxTRES", "MaxTRESPerNode", "MaxJobs", "MaxWall",
    "MaxSubmitJobs", "GrpJobs", "GrpSubmitJobs", "GrpTRESMins", "Fairshare",
)  # fmt: skip
_USER_FIELDS = ("User", "DefaultAccount")


def associations_argv() -> list[str]:
    """Every association of every account and user."""
    return show("assoc", _FIELDS)


def users_argv() -> list[str]:
    """Every user's default account."""
    return show("user", _USER_FIELDS)


def accounts_argv() -> list[str]:
    """Every account's description."""
    return show("account", ("Account", "Descr"))


def associations_parse(text: str, cluster: str) -> Iterator[Association]:
    """The associations of this cluster: a database may serve several."""
    return (_association(line) for line in rows(text, _FIELDS) if line[0] == cluster)


def users_parse(text: str) -> dict[str, str]:
    """Default accounts by user."""
    return {name: account for name, account in rows(text, _USER_FIELDS) if account}


def _association(line: Sequence[str]) -> Association:
    _cluster, account, user, partition, parent, qos, default_qos = line[:7]
    group, job, node, jobs, minutes = line[7:12]
    submitted, group_jobs, group_submitted, total, shares = line[12:]
    return Association(
        account=account,
        user=user,
        partition=partition,
        parent=parent,
        qos=names(qos),
        default_qos=default_qos,
        group=amount(group),
        job=amount(job),
        node=amount(node),
        jobs=number(jobs),
        submitted=number(submitted),
        group_jobs=number(group_jobs),
        group_submitted=number(group_submitted),
        minutes=parse_minutes(minutes),
        total=minutes_of(total),
        shares=number(shares),
    )

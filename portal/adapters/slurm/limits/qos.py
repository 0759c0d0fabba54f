"""sacctmgr's qualities of service: arguments and parser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from portal.adapters.slurm.commands import amount, parse_minutes
from portal.adapters.slurm.limits.words import minutes_of, names, number, rows, show
from portal.core.cluster.limits import Qos

_FIELDS = (
    "Name", "Flags", "GrpTRES", "MaxTRESPerJob", "MaxTRESPerNode", "MaxTRESPerUser",
    "MaxTRESPerAccount", "MaxJobsPerUser", "MaxWall",
    "MaxJobsPA", "MaxSubmitPU", "MaxSubmitPA", "GrpJobs", "GrpSubmit", "MinTRES", "GrpTRESMins",
    "Preempt", "PreemptMode",
)  # fmt: skip


def qos_argv() -> list[str]:
    """Every quality of service."""
    return show("qos", _FIELDS)


def qos_texts_argv() -> list[str]:
    """The description of every quality of service."""
    return show("qos", ("Name", "Descr"))


def qos_parse(text: str) -> Iterator[Qos]:
    """Parse sacctmgr's lines."""
    return map(_qos, rows(text, _FIELDS))


def _qos(line: Sequence[str]) -> Qos:
    name, flags, group, job, node, user, account, jobs, minutes = line[:9]
    of_account, submitted, submitted_of_account, group_jobs, group_submitted = line[9:14]
    least, total, preempt, mode = line[14:]
    return Qos(
        name=name,
        flags=names(flags),
        group=amount(group),
        job=amount(job),
        node=amount(node),
        user=amount(user),
        account=amount(account),
        jobs=number(jobs),
        jobs_of_account=number(of_account),
        submitted=number(submitted),
        submitted_of_account=number(submitted_of_account),
        group_jobs=number(group_jobs),
        group_submitted=number(group_submitted),
        minutes=parse_minutes(minutes),
        least=amount(least),
        total=minutes_of(total),
        preempt=names(preempt),
        preempt_mode=mode.lower(),
    )

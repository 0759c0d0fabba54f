"""sacct: its arguments, and the parsers of its output.

The ends of sessions and the facts of jobs are queried without any user-written text, so that no
line can be forged. User-written text is a separate query with a random delimiter. But sacct takes
the delimiter as an argument only, which other users of the login node can read and write into a job
of theirs while the query runs: so its output counts only if it has exactly the fields of the known
records.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from portal.adapters.slurm.commands import (
    SEPARATOR,
    UnexpectedOutput,
    amount,
    exit_signal,
    is_job_id,
    read_nodes,
    read_state,
    read_time,
)
from portal.adapters.slurm.texts import output_texts
from portal.core.cluster.job_reports import JobReport
from portal.core.jobs.job import Job, JobTexts

OFF = "accounting storage is disabled"
"""sacct's message on a cluster without accounting."""
_FIELDS = ("JobIDRaw", "User", "State", "NodeList", "Submit", "Start", "End", "ExitCode")


def sacct_argv(job_ids: Collection[str]) -> list[str]:
    """Accounting's records of these jobs, regardless of when they ran."""
    return [*_base(SEPARATOR, _FIELDS), *_jobs(job_ids)]


def sacct_named_argv(name: str, user: str, since: datetime) -> list[str]:
    """One user's jobs of one name since a time."""
    return [
        *_base(SEPARATOR, _FIELDS),
        f"--name={name}",
        f"--user={user}",
        f"--starttime={_moment(since)}",
    ]


def _moment(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _jobs(job_ids: Collection[str]) -> list[str]:
    if invalid := [job_id for job_id in job_ids if not is_job_id(job_id)]:
        raise ValueError(f"invalid job ids: {invalid}")
    return ["--allusers", f"--jobs={','.join(sorted(job_ids))}"]


def _base(delimiter: str, fields: Collection[str]) -> list[str]:
    return [
        "sacct",
        "--noheader",
        "--allocations",
        "--parsable2",
        f"--delimiter={delimiter}",
        f"--format={','.join(fields)}",
    ]


def sacct_parse(text: str) -> list[JobReport]:
    """Parse sacct's lines."""
    return [_line(line) for line in text.split("\n") if line.strip()]


def _line(line: str) -> JobReport:
    fields = line.split(SEPARATOR)
    if len(fields) != len(_FIELDS):
        raise UnexpectedOutput(f"sacct: {len(fields)} fields in {line!r}")
    return _ran(list(map(str.strip, fields)))


def _ran(words: list[str]) -> JobReport:
    """When and where a job ran and how it ended, from the fields that both queries have."""
    job_id, user, state, nodes, submitted, start, end, code = words
    return JobReport(
        job_id=job_id,
        user=user,
        state=read_state(state),
        nodes=read_nodes(nodes),
        submitted=read_time(submitted),
        start=read_time(start),
        end=read_time(end),
        exit_code=int(code.partition(":")[0] or 0),
        cancelled_by=state.partition(" by ")[2] or None,
    )


# Complete records

_FACTS = (
    *_FIELDS, "JobID", "Partition", "Account", "QOS", "AllocTRES", "ReqTRES", "TimelimitRaw",
    "Priority",
)  # fmt: skip
_TEXTS = ("JobIDRaw", "JobName", "WorkDir")
_OUTPUT = ("StdOut", "StdErr")
"""Fields since Slurm 24.05."""
_OVER = "BF,CA,CD,DL,F,NF,OOM,PR,TO"
"""The codes of final job states."""


@dataclass(frozen=True)
class RecordQuery:
    """Selects records: those of some jobs, or of all jobs that ended in a time span."""

    job_ids: tuple[str, ...] = ()
    span: tuple[datetime, datetime] | None = None

    @property
    def options(self) -> list[str]:
        """The options of sacct that select the records."""
        if self.span is None:
            return _jobs(self.job_ids)
        # With final states, sacct selects the jobs that ended in the span. Without states, it would
        # print the whole queue of a busy site for the shortest span.
        since, until = map(_moment, self.span)
        times = [f"--starttime={since}", f"--endtime={until}"]
        return ["--allusers", f"--state={_OVER}", *times]


def facts_argv(query: RecordQuery) -> list[str]:
    """The facts of these jobs, without user-written text."""
    return [*_base(SEPARATOR, _FACTS), *query.options]


def facts_parse(text: str) -> tuple[list[str], list[Job]]:
    """The ids of all records in their order, and the jobs whose records are readable."""
    lines = [line.split(SEPARATOR) for line in text.split("\n") if line.strip()]
    jobs = []
    for fields in lines:
        with suppress(UnexpectedOutput, ValueError):
            jobs.append(_job(fields))
    return [fields[0].strip() for fields in lines], jobs


def texts_argv(query: RecordQuery, delimiter: str, *, output: bool = True) -> list[str]:
    """The user-written texts of these jobs."""
    argv = [*_base(delimiter, [*_TEXTS, *(_OUTPUT if output else ())]), *query.options]
    argv[argv.index("--parsable2")] = "--parsable"  # a delimiter also ends each record
    return argv


def texts_parse(
    text: str, delimiter: str, numbers: Sequence[str], *, output: bool = True
) -> dict[str, JobTexts] | None:
    """The user-written texts by job; None unless the records are exactly those of `numbers`."""
    size = len(_TEXTS) + (len(_OUTPUT) if output else 0)
    fields = text.split(delimiter)
    if len(fields) != size * len(numbers) + 1:
        return None
    records = [fields[start : start + size] for start in range(0, len(fields) - 1, size)]
    if [record[0].strip() for record in records] != list(numbers):
        return None
    return {
        number: output_texts(*record[1:]) for number, record in zip(numbers, records, strict=True)
    }


_SHOWN = re.compile(
    r"(?P<first>\d+)(?:_(?:\[(?P<tasks>[^\]]+)\]|(?P<task>\d+))|\+(?P<offset>\d+))?", re.ASCII
)


def _job(fields: list[str]) -> Job:
    if len(fields) != len(_FACTS):
        raise UnexpectedOutput(f"sacct: {len(fields)} fields")
    words = [field.strip() for field in fields]
    shown, partition, account, qos, allocated, requested, limit, priority = words[8:]
    match = _SHOWN.fullmatch(shown)
    if match is None or not is_job_id(words[0]) or not words[1]:
        raise UnexpectedOutput(f"sacct: job {shown!r}")
    amounts = asdict(amount(allocated or requested))
    holds: Any = {name: number or 0 for name, number in amounts.items()}
    report = replace(
        _ran(words[:8]),
        time_limit=int(limit) if limit.isdecimal() else None,
        priority=int(priority) if priority.isdecimal() else 0,
        partition=partition,
        account=account,
        qos=qos,
        **holds,
    )
    tasks = match["tasks"] or match["task"] or ""
    return Job(
        report=report,
        array_id=match["first"] if tasks else "",
        tasks=tasks,
        het_id=match["first"] if match["offset"] else "",
        het_offset=int(match["offset"] or 0),
        signal=exit_signal(words[7]),
    )

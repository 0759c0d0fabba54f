"""sacct: its arguments, and the parsers of its output.

Two questions: the ends of sessions, without any text of users; and whole records of jobs, with
their texts (names may contain anything, so the delimiter is a word that nobody can know before).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from portal.adapters.slurm.commands import (
    SEPARATOR,
    UnexpectedOutput,
    amount,
    exit_signal,
    expand_nodes,
    is_job_id,
    read_state,
    read_time,
)
from portal.adapters.slurm.texts import output_texts
from portal.core.cluster.jobs import JobReport
from portal.core.jobs.job import Job

OFF = "accounting storage is disabled"
"""sacct's words on a cluster without accounting: it knows no job, and never will."""
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
    """When and where it ran and how it ended, from the fields that both questions have."""
    job_id, user, state, nodes, submitted, start, end, code = words
    return JobReport(
        job_id=job_id,
        user=user,
        state=read_state(state),
        nodes=expand_nodes(nodes),
        submitted=read_time(submitted),
        start=read_time(start),
        end=read_time(end),
        exit_code=int(code.partition(":")[0] or 0),
        cancelled_by=state.partition(" by ")[2] or None,
    )


# Whole records

_RECORD = (
    *_FIELDS, "JobID", "Partition", "Account", "QOS", "AllocTRES", "ReqTRES", "TimelimitRaw",
    "Priority", "JobName", "WorkDir",
)  # fmt: skip
_OUTPUT = ("StdOut", "StdErr")
"""Fields that exist since Slurm 24.05."""


def records_argv(
    delimiter: str,
    *,
    job_ids: Collection[str] = (),
    span: tuple[datetime, datetime] | None = None,
    output: bool = True,
) -> list[str]:
    """Whole records of these jobs, or of all jobs that existed in a span of time."""
    fields = [*_RECORD, *(_OUTPUT if output else ())]
    argv = _base(delimiter, fields)
    argv[argv.index("--parsable2")] = "--parsable"  # a delimiter also ends each record
    if span is None:
        return [*argv, *_jobs(job_ids)]
    return [*argv, "--allusers", f"--starttime={_moment(span[0])}", f"--endtime={_moment(span[1])}"]


def records_parse(text: str, delimiter: str, *, output: bool = True) -> Iterator[Job]:
    """Parse whole records; incomplete and unreadable ones are left out."""
    size = len(_RECORD) + (len(_OUTPUT) if output else 0)
    fields = text.split(delimiter)
    for start in range(0, len(fields) - size + 1, size):
        try:
            yield _record(fields[start : start + size])
        except (UnexpectedOutput, ValueError):
            continue


_SHOWN = re.compile(
    r"(?P<first>\d+)(?:_(?:\[(?P<tasks>[^\]]+)\]|(?P<task>\d+))|\+(?P<offset>\d+))?", re.ASCII
)


def _record(fields: list[str]) -> Job:
    words = [field.strip() for field in fields]
    shown, partition, account, qos, allocated, requested, limit, priority = words[8:16]
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
        texts=output_texts(*fields[16:]),
    )

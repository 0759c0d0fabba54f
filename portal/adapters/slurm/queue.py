"""squeue: its arguments, and the parser of its output, for one poll of all users' jobs.

A site with 50,000 jobs has as many lines, of which few change within two seconds: only changed
lines are parsed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from portal.adapters.slurm.commands import (
    SEPARATOR,
    UnexpectedOutput,
    amount,
    exit_code,
    exit_signal,
    parse_minutes,
    read_nodes,
    read_state,
    read_time,
)
from portal.core.cluster.job_reports import JobReport, JobState, plausible_start
from portal.core.jobs.job import Job

_FIELDS = (
    "JobID",
    "UserName",
    "State",
    "Reason",
    "NodeList",
    "SubmitTime",
    "StartTime",
    "EndTime",
    "exit_code",
    "Partition",
    "PriorityLong",
    "Account",
    "QOS",
    "tres-alloc",
    "TimeLimit",
    "RestartCnt",
    "ArrayJobID",
    "ArrayTaskID",
    "HetJobID",
    "HetJobOffset",
)


def squeue_argv(
    name: str | None = None,
    user: str | None = None,
    job: str = "",
    fields: Sequence[str] = _FIELDS,
) -> list[str]:
    """List all users' jobs in every state, or those of some names or one user, or one job."""
    formats = ",".join(f"{field}:{SEPARATOR}" for field in fields)
    argv = ["squeue", "--noheader", "--all", "--states=all", f"--Format={formats}"]
    if name is not None:
        argv.append(f"--name={name}")
    if user is not None:
        argv.append(f"--user={user}")
    if job:
        argv.append(f"--jobs={job}")
    return argv


def named_argv(names: Collection[str]) -> list[str]:
    """List all users' jobs of these names, each line after its job's name."""
    return squeue_argv(name=",".join(names), fields=("Name", *_FIELDS))


def named_parse(text: str, names: Collection[str]) -> dict[str, list[JobReport]]:
    """The jobs by name. squeue adds those without a name, which are left out."""
    # Only the names of sessions were asked for, which contain neither separators nor line breaks.
    reports: dict[str, list[JobReport]] = {name: [] for name in names}
    for line in text.split("\n"):
        name, _, fields = line.partition(SEPARATOR)
        if name.strip() in reports:
            reports[name.strip()].append(_line(fields).report)
    return reports


def squeue_parse(text: str) -> list[Job]:
    """Parse squeue's lines."""
    return [_line(line) for line in text.split("\n") if line.strip()]


class QueueReader:
    """Parses polls of the whole queue; jobs with unchanged lines remain the same objects."""

    def __init__(self) -> None:
        self._parsed: dict[str, Job] = {}
        self._queue: dict[str, Job] = {}

    def read(self, text: str) -> dict[str, Job]:
        """The jobs by number; raises UnexpectedOutput."""
        # Jobs whose lines are unchanged are not touched: there may be 50,000 of them.
        lines = dict.fromkeys(text.split("\n"))
        new = {line: _line(line) for line in lines if line not in self._parsed and line.strip()}
        queue = self._queue.copy()
        for line in [line for line in self._parsed if line not in lines]:
            queue.pop(self._parsed.pop(line).id, None)
        self._parsed |= new
        queue |= {job.id: job for job in new.values()}
        if len(queue) != len(self._parsed):  # with SQUEUE_PRIORITY, a job has several lines
            queue = {job.id: job for job in self._parsed.values()}
        self._queue = queue
        return queue


def _line(line: str) -> Job:
    fields = line.split(SEPARATOR)
    # A separator also follows the last field, so the list ends with an empty string.
    if len(fields) != len(_FIELDS) + 1:
        raise UnexpectedOutput(f"squeue: {len(fields)} fields in {line!r}")
    words = list(map(str.strip, fields[:-1]))
    array, task, het, offset = words[16:]
    is_task = task not in _NONE
    return Job(
        report=_report(words),
        array_id=array if is_task else "",
        tasks=task if is_task else "",
        het_id=het if het not in _NONE and het != "0" else "",
        het_offset=int(offset) if offset.isdecimal() else 0,
        signal=exit_signal(words[8]) if read_state(words[2]).over else None,
    )


_NONE = ("", "N/A", "(null)")


def _report(words: list[str]) -> JobReport:
    job_id, user, state, reason, nodes, submitted, start, end, code, partition = words[:10]
    priority, account, qos, tres, limit, restarts = words[10:16]
    report_state = read_state(state)
    runs = not report_state.over and report_state is not JobState.PENDING
    allocated, minutes = amount(tres), parse_minutes(limit)
    return JobReport(
        job_id=job_id,
        user=user,
        state=report_state,
        reason=reason or None,
        nodes=read_nodes(nodes),
        submitted=read_time(submitted),
        start=_start(report_state, nodes, read_time(start)),
        end=read_time(end) if report_state.over else None,
        # Without a limit, Slurm prints an end that is a year away.
        deadline=read_time(end) if runs and minutes is not None else None,
        time_limit=minutes,
        restarts=int(restarts) if restarts.isdigit() else 0,
        exit_code=exit_code(code) if report_state.over else None,
        partition=partition,
        priority=int(priority) if priority.isdigit() else 0,
        account=account,
        qos=qos,
        cpus=allocated.cpus or 0,
        memory_mb=allocated.memory_mb or 0,
        shards=allocated.shards or 0,
        gpus=allocated.gpus or 0,
    )


def _start(state: JobState, nodes: str, time: datetime | None) -> datetime | None:
    if state is JobState.PENDING:
        return plausible_start(time, datetime.now(UTC))
    # For a job that was cancelled before its start, squeue shows the time of the cancellation.
    return None if state.over and not nodes else time

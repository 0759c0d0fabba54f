"""What jobs use: sstat for the running steps, as their owner; sacct for jobs that are over.

Only numbers, node names and states are asked for, so that no text of users is in the output. sstat
runs in its user's own shell, whose output is not trusted: what cannot be sstat's is left out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from portal.adapters.slurm import commands
from portal.adapters.slurm.commands import SEPARATOR, TARGET
from portal.adapters.ssh.transport import Completed, Transport
from portal.core.interfaces.jobs import JobMeter
from portal.core.jobs.job import Job
from portal.core.jobs.usage import EndedUse, StepUse
from portal.errors import Unavailable

log = logging.getLogger(__name__)

SECONDS = 10.0
"""Deadline of a query, in seconds: sstat waits for nodes that do not answer."""
MOST_STEPS = 500
"""Steps of one job that are read."""
MOST_TASKS, MOST_BYTES = 10**7, 2**60
"""Of one step. No job has more: greater numbers are a shell's jokes, which pages cannot format."""

_LIVE = ("JobID", "NTasks", "AveCPU", "AveRSS", "MaxRSS", "MaxRSSNode", "TRESUsageInTot")
_OVER = (
    "JobIDRaw",
    "State",
    "End",
    "ElapsedRaw",
    "AllocCPUS",
    "AllocTRES",
    "NTasks",
    "TotalCPU",
    "MaxRSS",
    "MaxRSSNode",
)


def sstat_argv(job: Job) -> list[str]:
    """The running steps of one job; sstat separates fields by "|" and no other character."""
    base = ["sstat", "--allsteps", "--noheader", "--parsable2", "--noconvert"]
    return [*base, f"--jobs={_checked(job.id)}", f"--format={','.join(_LIVE)}"]


def sstat_parse(text: str, job_id: str) -> list[StepUse]:
    """Parse sstat's lines about this job; all others are left out."""
    rows = _rows(text, "|", len(_LIVE), job_id)
    return [step for fields in rows if (step := _live(fields, job_id))]


def _live(fields: Sequence[str], job_id: str) -> StepUse | None:
    id_, tasks, cpu, memory, peak, node, total = fields
    step = _step(id_, job_id)
    if step is None:
        return None
    count = min(_number(tasks), MOST_TASKS) or 1
    all_of = dict(item.partition("=")[::2] for item in total.split(",") if "=" in item)
    seconds, each = read_seconds(all_of.get("cpu", "")), read_seconds(cpu)
    now, one = read_bytes(all_of.get("mem", "")), read_bytes(memory)
    return StepUse(
        id=step,
        tasks=count,
        cpu_seconds=seconds if seconds is not None or each is None else each * count,
        memory=now if now is not None or one is None else one * count,
        peak=read_bytes(peak),
        peak_node=_node(node),
        gpu_percent=_percent(all_of.get("gres/gpuutil", "")),
        gpu_memory=read_bytes(all_of.get("gres/gpumem", "")),
    )


def sacct_argv(job: Job) -> list[str]:
    """One job and its steps, as accounting has them."""
    return [
        "sacct",
        "--noheader",
        "--allusers",
        "--parsable2",
        "--noconvert",
        f"--delimiter={SEPARATOR}",
        f"--jobs={_checked(_asked(job))}",
        f"--format={','.join(_OVER)}",
    ]


def sacct_parse(text: str, job_id: str) -> EndedUse | None:
    """Parse sacct's lines about this job; None while accounting does not have its end."""
    rows = list(_rows(text, SEPARATOR, len(_OVER), job_id))
    whole = next((row for row in rows if row[0] == job_id), None)
    if whole is None or commands.read_time(whole[2]) is None:
        return None
    steps = [step for row in rows if (step := _over(row, job_id))]
    return EndedUse(
        steps=tuple(steps),
        cores=_number(whole[4]),
        elapsed=float(_number(whole[3])),
        memory_mb=commands.amount(whole[5]).memory_mb or 0,
    )


def _over(fields: Sequence[str], job_id: str) -> StepUse | None:
    step = _step(fields[0], job_id)
    if step is None:
        return None
    tasks, cpu, peak, node = fields[6:10]
    return StepUse(
        id=step,
        tasks=_number(tasks) or 1,
        cpu_seconds=read_seconds(cpu),
        peak=read_bytes(peak),
        peak_node=_node(node),
    )


def _rows(text: str, separator: str, length: int, job_id: str) -> Iterator[list[str]]:
    """The fields of the lines about this job; of an array's, there may be those of other tasks."""
    lines = (
        line for line in text.split("\n") if line.startswith((job_id + ".", job_id + separator))
    )
    for line in islice(lines, MOST_STEPS + 1):
        fields = [field.strip() for field in line.split(separator)]
        if len(fields) == length:
            yield fields


def _step(id_: str, job_id: str) -> str | None:
    job, _, step = id_.partition(".")
    return (
        step
        if job == job_id and re.fullmatch(r"[0-9]{1,10}|batch|extern|interactive", step)
        else None
    )


def _asked(job: Job) -> str:
    """The number for sacct: that of an array's last task alone would stand for all of them.

    So it does for sstat, which prints all of them for "7_12" as well.
    """
    return f"{job.array_id}_{job.tasks}" if job.tasks.isdecimal() else job.id


def _checked(job_id: str) -> str:
    if not TARGET.fullmatch(job_id):
        raise ValueError(f"invalid job id: {job_id}")
    return job_id


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else 0


def _percent(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,6}", text) else None


def _node(text: str) -> str:
    return text if re.fullmatch(r"[\w.-]{1,253}", text, re.ASCII) else ""


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}


def read_bytes(text: str) -> int | None:
    """Parse an amount such as "1234", "1205K" or "1.5G" to bytes; None for anything else."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)([KMGTP]?)", text)
    found = int(float(match[1]) * _UNITS[match[2]]) if match else MOST_BYTES
    return found if found < MOST_BYTES else None


def read_seconds(text: str) -> float | None:
    """Parse [days-][hours:]minutes:seconds[.fraction] to seconds; None for anything else."""
    match = re.fullmatch(
        r"(?:([0-9]{1,6})-)?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,6}(?:\.[0-9]{1,6})?)", text
    )
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


class SlurmMeter(JobMeter):
    """JobMeter over Slurm's command line tools."""

    def __init__(self, transport: Transport, reader: str) -> None:
        self._transport = transport
        self._reader = reader

    def running(self, job: Job) -> Sequence[StepUse]:
        done = self._ask(job.report.user, sstat_argv(job))
        steps = sstat_parse(done.stdout.decode(errors="replace"), job.id)
        # It complains about steps that have just ended, and still prints the others.
        if done.code != 0 and not steps:
            raise Unavailable(f"Slurm does not tell what it uses: {done.error_text()[:200]}")
        return steps

    def ended(self, job: Job) -> EndedUse | None:
        done = self._ask(self._reader, sacct_argv(job))
        if done.code != 0:
            raise Unavailable(f"Slurm's accounting does not answer: {done.error_text()[:200]}")
        return sacct_parse(done.stdout.decode(errors="replace"), job.id)

    def _ask(self, user: str, argv: Sequence[str]) -> Completed:
        # Its own timeout, so that a node that does not answer does not count against the user.
        words = ["env", *commands.ENVIRONMENT, "timeout", "--kill-after=2", f"{SECONDS:.0f}", *argv]
        done = self._transport.run(user, words, seconds=SECONDS + 5)
        if done.code in (124, 137):
            raise Unavailable("Slurm takes too long to tell what it uses.")
        return done

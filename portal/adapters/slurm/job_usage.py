"""Resource usage of jobs: sstat for running steps, as their owner; sacct for jobs that have ended.

Only numbers, node names and states are queried, so the output has no user-written text. sstat runs
in its user's shell, whose output is not trusted: lines that cannot be sstat's are left out.
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
from portal.core.jobs.job_usage import EndedUse, StepUse
from portal.errors import Unavailable

log = logging.getLogger(__name__)

SECONDS = 10.0
"""Deadline of a query, in seconds: sstat waits for nodes that do not answer."""
MOST_STEPS = 500
"""Maximum number of steps that are read of one job."""
MOST_TASKS, MOST_BYTES = 10**7, 2**60
"""Limits of one step. Larger numbers are forged by a user's shell; pages cannot format them."""

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
    """List the running steps of one job; sstat's only field separator is "|"."""
    base = ["sstat", "--allsteps", "--noheader", "--parsable2", "--noconvert"]
    return [*base, f"--jobs={_checked(job.id)}", f"--format={','.join(_LIVE)}"]


def sstat_parse(text: str, job_id: str) -> list[StepUse]:
    """Parse sstat's lines about this job; all others are left out."""
    rows = _rows(text, "|", len(_LIVE), job_id)
    return [step for fields in rows if (step := _running_step(fields, job_id))]


def _running_step(fields: Sequence[str], job_id: str) -> StepUse | None:
    id_, tasks, cpu, memory, peak, node, total = fields
    step = _step_id(id_, job_id)
    if step is None:
        return None
    count = min(_number(tasks), MOST_TASKS) or 1
    totals = dict(item.partition("=")[::2] for item in total.split(",") if "=" in item)
    cpu_sum, cpu_mean = read_seconds(totals.get("cpu", "")), read_seconds(cpu)
    memory_sum, memory_mean = read_bytes(totals.get("mem", "")), read_bytes(memory)
    return StepUse(
        id=step,
        tasks=count,
        cpu_seconds=cpu_sum if cpu_sum is not None or cpu_mean is None else cpu_mean * count,
        memory=memory_sum if memory_sum is not None or memory_mean is None else memory_mean * count,
        peak=read_bytes(peak),
        peak_node=_node(node),
        gpu_percent=_percent(totals.get("gres/gpuutil", "")),
        gpu_memory=read_bytes(totals.get("gres/gpumem", "")),
    )


def sacct_argv(job: Job) -> list[str]:
    """List one job and its steps from accounting."""
    return [
        "sacct",
        "--noheader",
        "--allusers",
        "--parsable2",
        "--noconvert",
        f"--delimiter={SEPARATOR}",
        f"--jobs={_checked(_sacct_id(job))}",
        f"--format={','.join(_OVER)}",
    ]


def sacct_parse(text: str, job_id: str) -> EndedUse | None:
    """Parse sacct's lines about this job; None while accounting does not have its end."""
    rows = list(_rows(text, SEPARATOR, len(_OVER), job_id))
    allocation = next((row for row in rows if row[0] == job_id), None)
    if allocation is None or commands.read_time(allocation[2]) is None:
        return None
    steps = [step for row in rows if (step := _ended_step(row, job_id))]
    return EndedUse(
        steps=tuple(steps),
        cores=_number(allocation[4]),
        elapsed=float(_number(allocation[3])),
        memory_mb=commands.amount(allocation[5]).memory_mb or 0,
    )


def _ended_step(fields: Sequence[str], job_id: str) -> StepUse | None:
    step = _step_id(fields[0], job_id)
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
    """The fields of the lines about this job; for arrays, the output also has other tasks."""
    lines = (
        line for line in text.split("\n") if line.startswith((job_id + ".", job_id + separator))
    )
    for line in islice(lines, MOST_STEPS + 1):
        fields = [field.strip() for field in line.split(separator)]
        if len(fields) == length:
            yield fields


def _step_id(id_: str, job_id: str) -> str | None:
    job, _, step = id_.partition(".")
    return (
        step
        if job == job_id and re.fullmatch(r"[0-9]{1,10}|batch|extern|interactive", step)
        else None
    )


def _sacct_id(job: Job) -> str:
    """The job id for sacct: the id of an array's last task alone would select the whole array.

    sstat selects the whole array for "7_12" as well.
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
    size = int(float(match[1]) * _UNITS[match[2]]) if match else MOST_BYTES
    return size if size < MOST_BYTES else None


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
        result = self._ask(job.report.user, sstat_argv(job))
        steps = sstat_parse(result.stdout.decode(errors="replace"), job.id)
        # sstat fails for steps that have just ended, and still prints the others.
        if result.code != 0 and not steps:
            raise Unavailable(f"Slurm does not tell what it uses: {result.error_text()[:200]}")
        return steps

    def ended(self, job: Job) -> EndedUse | None:
        result = self._ask(self._reader, sacct_argv(job))
        if result.code != 0:
            raise Unavailable(f"Slurm's accounting does not answer: {result.error_text()[:200]}")
        return sacct_parse(result.stdout.decode(errors="replace"), job.id)

    def _ask(self, user: str, argv: Sequence[str]) -> Completed:
        # With a separate timeout, so that an unresponsive node does not count against the user.
        words = ["env", *commands.ENVIRONMENT, "timeout", "--kill-after=2", f"{SECONDS:.0f}", *argv]
        result = self._transport.run(user, words, seconds=SECONDS + 5)
        if result.code in (124, 137):
            raise Unavailable("Slurm takes too long to tell what it uses.")
        return result

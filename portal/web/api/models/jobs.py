"""Response models for jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from portal.core.cluster.gpu_offers import NO_GPUS, Gpus
from portal.core.cluster.job_reports import JobReport, JobState, is_unlimited
from portal.core.jobs.actions import JobOutcome
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.job_usage import JobUsage
from portal.core.session.pending_reasons import Reason
from portal.core.units import format_size
from portal.web.api.models.base import ResponseModel, Time
from portal.web.api.models.sessions import ReasonOut


class ArrayOut(ResponseModel):
    """The array that a job belongs to, and its part of it."""

    id: str
    """The number of the array."""
    tasks: str
    """The number of the task, or the tasks that have not started, as Slurm writes them: 5-19%4."""
    states: dict[JobState, int] = Field(default_factory=dict)
    """In lists, for a row that represents all tasks: the number of tasks in each state."""


class HetOut(ResponseModel):
    """The heterogeneous job that a job is a component of."""

    id: str
    """The number of the heterogeneous job."""
    offset: int


class JobEndOut(ResponseModel):
    """How a job ended."""

    text: str
    exit_code: int | None
    signal: int | None
    """The signal that ended it."""


class JobResourcesOut(ResponseModel):
    """The resources that a job has, or has requested."""

    cpus: int
    memory: str
    nodes: int
    """Number of its nodes; 0 while it has none."""
    gpus: int
    """Whole GPUs."""
    shards: int
    """Slurm's shards of GPUs."""
    fgpu: float | None
    """Its GPUs and shards in fGPU; null if it has none, or if there are several kinds of GPUs."""

    @classmethod
    def of(cls, report: JobReport, gpus: Gpus) -> JobResourcesOut:
        """Build it."""
        amount = gpus.amount(report.shards, report.gpus)
        return cls(
            cpus=report.cpus,
            memory=format_size(report.memory_mb),
            nodes=len(report.nodes),
            gpus=report.gpus,
            shards=report.shards,
            fgpu=None if amount is None else float(amount),
        )


@dataclass(frozen=True)
class JobFacts:
    """Inputs of a job's response besides the job itself."""

    reason: Reason | None = None
    ahead: int | None = None
    end_text: str = ""
    gpus: Gpus = NO_GPUS
    states: Mapping[JobState, int] | None = None
    """For a row that represents an array."""


class JobOut(ResponseModel):
    """A job, a task of an array, or the tasks of an array that have not started."""

    id: str
    """As Slurm's commands show it: 123, 123_4, 123_[5-9], 123+1."""
    array: ArrayOut | None
    het: HetOut | None
    name: str
    owner: str
    state: JobTab
    slurm_state: JobState
    reason: ReasonOut | None
    end: JobEndOut | None
    unknown_since: Time | None
    """The time since which neither Slurm's queue nor its accounting knows the job."""
    partition: str
    account: str
    qos: str
    resources: JobResourcesOut
    nodes: list[str]
    submitted: Time | None
    started: Time | None
    ended: Time | None
    deadline: Time | None
    """When its time limit is reached."""
    time_limit: int | None
    """Minutes; null without a limit, and where it is not known."""
    unlimited: bool
    """Whether it has, or had, no time limit."""
    restarts: int
    """The number of times that Slurm has requeued it."""
    directory: str
    command: str
    """The script with its arguments; empty if it was not a file."""
    stdout: str
    stderr: str
    dependency: str
    session: str | None
    """The session of which it is the job."""

    @classmethod
    def of(cls, job: Job, facts: JobFacts) -> JobOut:
        """Build it."""
        report, texts = job.report, job.texts
        waits = report.state is JobState.PENDING
        return cls(
            id=shown_id(job, facts.states is not None),
            array=_array(job, facts.states),
            het=HetOut(id=job.het_id, offset=job.het_offset) if job.het_id else None,
            name=texts.name,
            owner=report.user,
            state=job.tab,
            slurm_state=report.state,
            reason=_reason(job, facts),
            end=_end(job, facts),
            unknown_since=job.gone,
            partition=report.partition,
            account=report.account,
            qos=report.qos,
            resources=JobResourcesOut.of(report, facts.gpus),
            nodes=list(report.nodes),
            submitted=report.submitted,
            started=None if waits else report.start,
            ended=report.end if report.state.over else None,
            deadline=None if waits else report.deadline,
            time_limit=report.time_limit,
            unlimited=is_unlimited(report),
            restarts=report.restarts,
            directory=texts.directory,
            command=texts.command,
            stdout=texts.stdout,
            stderr=texts.stderr,
            dependency=texts.dependency,
            session=job.session,
        )


def shown_id(job: Job, array: bool) -> str:
    """The number to show for a job, or for its array."""
    return job.array_id if array else job.shown_id


def _array(job: Job, states: Mapping[JobState, int] | None) -> ArrayOut | None:
    if not job.array_id:
        return None
    if states is None:
        return ArrayOut(id=job.array_id, tasks=job.tasks)
    return ArrayOut(id=job.array_id, tasks=job.tasks, states=dict(states))


def _reason(job: Job, facts: JobFacts) -> ReasonOut | None:
    reason = facts.reason
    if reason is None:
        return None
    waits = job.report.state is JobState.PENDING
    return ReasonOut(
        code=reason.code,
        text=reason.text,
        advice=reason.advice,
        ahead=facts.ahead,
        estimated_start=job.report.start if waits else None,
    )


def _end(job: Job, facts: JobFacts) -> JobEndOut | None:
    if not job.report.state.over:
        return None
    return JobEndOut(text=facts.end_text, exit_code=job.report.exit_code, signal=job.signal)


class JobPageOut(ResponseModel):
    """A page of the list of jobs."""

    jobs: list[JobOut]
    next_cursor: str | None
    """Cursor of the next page; null on the last page."""
    searched_since: datetime | None
    """Ended jobs that were submitted before were not searched or sorted; null if all were."""


class JobOutcomeOut(ResponseModel):
    """The result of an action on one job."""

    id: str
    """As in the request."""
    done: bool
    text: str

    @classmethod
    def of(cls, outcome: JobOutcome) -> JobOutcomeOut:
        """Build it."""
        return cls(id=outcome.id, done=outcome.done, text=outcome.text)


class JobOutcomesOut(ResponseModel):
    """The results of an action on each of the jobs."""

    outcomes: list[JobOutcomeOut]


class JobOutputOut(ResponseModel):
    """Part of a job's output."""

    output: str
    offset: int
    """Offset of this part, in bytes; less than requested if the file has become shorter."""
    next_offset: int
    """Offset of the next part, in bytes."""


class JobUsageOut(ResponseModel):
    """The usage of a job as last reported by Slurm, which is queried every ten seconds at most."""

    measured: Time | None
    """Null if Slurm was never queried, or has no data about this run."""
    final: bool
    """Whether the job was over, so that these are the figures of the whole run."""
    cpus: int
    cpu_seconds: float | None
    cpus_busy: float | None
    """Cores busy on average since the previous measurement."""
    cpu_efficiency: float | None
    """CPU time used, divided by its cores' time since its start; 0 to 1."""
    memory: int | None
    """Bytes in use by all of its tasks."""
    memory_peak: int | None
    """Peak of its largest task, in bytes."""
    memory_peak_node: str
    """The node of that task."""
    memory_peak_all: int | None
    """Sum of its tasks' peaks, in bytes: an upper bound if there are several tasks."""
    gpu_percent: float | None
    gpu_memory: int | None
    """Bytes."""
    problem: str
    """Why Slurm reported nothing."""

    @classmethod
    def of(cls, usage: JobUsage | None) -> JobUsageOut:
        """Build it."""
        data = usage or JobUsage(at=datetime.min, start=None)
        return cls(
            measured=data.at if data.measured else None,
            final=data.final,
            cpus=data.cores,
            cpu_seconds=data.cpu_seconds,
            cpus_busy=data.cores_now,
            cpu_efficiency=data.cpu_share,
            memory=data.memory,
            memory_peak=data.peak,
            memory_peak_node=data.peak_node,
            memory_peak_all=data.all_peak,
            gpu_percent=data.gpu_percent,
            gpu_memory=data.gpu_memory,
            problem=data.problem,
        )

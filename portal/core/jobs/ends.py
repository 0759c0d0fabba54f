"""Explains how a job ended, in plain words."""

from __future__ import annotations

import signal

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import Job
from portal.core.units import exact_size, short_minutes

GONE = (
    "Slurm no longer knows this job: neither its queue nor its accounting has it, so how it ended "
    "is unknown."
)
_RAN = "Its output may say why."
_FIXED = {
    JobState.DEADLINE: "It could not end before its deadline, so Slurm ended it.",
    JobState.BOOT_FAIL: "A compute node could not be switched on. Submit it again.",
    JobState.PREEMPTED: "A job of higher priority needed the place. Submit it again.",
}


def explain_end(job: Job) -> str:
    """The end of a job, in words; "" before it has ended."""
    report = job.report
    if not report.state.over:
        return GONE if job.gone is not None else ""
    match report.state:
        case JobState.COMPLETED:
            return "It ended without an error (exit code 0)."
        case JobState.CANCELLED:
            return _cancelled(job)
        case JobState.TIMEOUT:
            return _timeout(job)
        case JobState.OUT_OF_MEMORY:
            return _out_of_memory(job)
        case JobState.NODE_FAIL:
            return _node_failed(job)
        case JobState.FAILED:
            return _failed(job)
        case _:
            return _FIXED[report.state]


def _cancelled(job: Job) -> str:
    user = job.report.cancelled_by
    when = "before it started" if job.report.start is None else "while it ran"
    if user is None:
        return f"It was cancelled {when}."
    by = user if user == job.report.user else f"{user} (an administrator)"
    return f"{by} cancelled it {when}."


def _timeout(job: Job) -> str:
    limit = job.report.time_limit
    reached = f"its time limit of {short_minutes(limit)}" if limit else "its time limit"
    return f"It reached {reached}. Submit it again with a longer one if it was too short."


def _out_of_memory(job: Job) -> str:
    requested_mb = job.report.memory_mb
    limit = f"the {exact_size(requested_mb)} that it asked for" if requested_mb else "it asked for"
    return f"It needed more memory than {limit}. Submit it again with more (--mem)."


def _node_failed(job: Job) -> str:
    nodes = job.report.nodes
    subject = f"The compute node {nodes[0]}" if len(nodes) == 1 else "One of its compute nodes"
    return f"{subject} failed. Submit it again."


def _failed(job: Job) -> str:
    if job.signal is not None:
        return f"Signal {job.signal}{_signal_name(job.signal)} ended it. {_RAN}"
    code = job.report.exit_code
    if not code:
        return f"It failed to start, or its node reported an error. {_RAN}"
    meaning = _MEANINGS.get(code, "")
    if code > _BY_SIGNAL and not meaning and (name := _signal_name(code - _BY_SIGNAL)):
        meaning = f": signal {code - _BY_SIGNAL}{name} ended its last command"
    return f"It failed with exit code {code}{meaning}. {_RAN}"


_BY_SIGNAL = 128
"""Shells exit with this plus the number of the signal that ended the last command."""
_MEANINGS = {
    126: ": a command cannot be executed",
    127: ": a command was not found",
}


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""

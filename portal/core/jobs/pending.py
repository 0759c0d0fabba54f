"""Explains why a job is pending or suspended, in plain words."""

from __future__ import annotations

import re
from dataclasses import replace

from portal.core.cluster.choice.charge import Charge
from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import Job
from portal.core.jobs.tasks import at_once
from portal.core.session.pending_reasons import JOBS, Reason, explain_reason

SUSPENDED = "Suspended"
_DEPENDENCY = re.compile(r"(?P<kind>[a-z]+):(?P<job>[0-9]{1,10}(?:_(?:[0-9]+|\*))?)(?:\+[0-9]+)?")
_CONDITIONS = {
    "after": "to start",
    "afterany": "to end",
    "afterok": "to end without an error",
    "afternotok": "to end with an error",
    "afterburstbuffer": "to end, and its data to be copied",
    "aftercorr": "to end without an error, task by task",
}
_MOST_JOBS = 5


def explain_pending(job: Job) -> Reason | None:
    """The reason why a job does not run; None if it runs or has ended."""
    report = job.report
    if report.state is JobState.SUSPENDED:
        return explain_reason(SUSPENDED, JOBS)
    if report.state is not JobState.PENDING:
        return None
    charge = Charge(report.account, qos=(report.qos,) if report.qos else ())
    reason = explain_reason(report.reason, JOBS, charge)
    text = _details(job, reason.code)
    return replace(reason, text=text) if text else reason


def _details(job: Job, code: str) -> str:
    """The text with details of this job; "" if there are none."""
    match code:
        case "Dependency":
            return dependency_text(job.texts.dependency)
        case "JobArrayTaskLimit" if most := at_once(job.tasks):
            few = "one task" if most == 1 else f"{most} tasks"
            return f"At most {few} of this array may run at once."
        case _:
            return ""


def dependency_text(dependency: str) -> str:
    """The jobs in Slurm's list of dependencies and their conditions; "" if none can be parsed."""
    waits: dict[str, list[str]] = {}
    for match in _DEPENDENCY.finditer(dependency):
        if match["kind"] in _CONDITIONS:
            waits.setdefault(_CONDITIONS[match["kind"]], []).append(match["job"])
    parts = [f"for {_jobs(jobs)} {condition}" for condition, jobs in waits.items()]
    if "singleton" in dependency:
        parts.append("for your other jobs of this name to end")
    together = " or ".join(parts) if "?" in dependency else " and ".join(parts)
    return f"It waits {together}." if parts else ""


def _jobs(numbers: list[str]) -> str:
    if len(numbers) == 1:
        return f"job {numbers[0]}"
    if len(numbers) > _MOST_JOBS:
        return f"jobs {', '.join(numbers[:_MOST_JOBS])} and {len(numbers) - _MOST_JOBS} more"
    return f"jobs {', '.join(numbers[:-1])} and {numbers[-1]}"

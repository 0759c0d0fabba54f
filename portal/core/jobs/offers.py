"""The actions that pages offer for a job; Slurm decides whether it performs them."""

from __future__ import annotations

from collections.abc import Collection

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.actions import HELD, JobAction
from portal.core.jobs.job import Job
from portal.core.session import session

_STOPPABLE = frozenset({JobState.RUNNING, JobState.SUSPENDED})


def offered(job: Job, states: Collection[JobState] = ()) -> tuple[JobAction, ...]:
    """The actions on a job, or on an array with tasks in these states.

    A session's job is controlled on the Sessions page.
    """
    if job.session or job.gone:
        return ()
    present = frozenset(states) or {job.report.state}
    actions = _of_pending(job, array=bool(states)) if JobState.PENDING in present else []
    if present & _STOPPABLE:
        actions.append(JobAction.REQUEUE)
    if not all(state.over for state in present):
        actions.append(JobAction.CANCEL)
    return tuple(actions)


def _of_pending(job: Job, array: bool) -> list[JobAction]:
    code = job.report.reason or ""
    if array and code == HELD:  # the reason of one task; others may not be held
        return [JobAction.HOLD, JobAction.RELEASE]
    if code == HELD:
        return [JobAction.RELEASE]
    return [] if code in session.HELD else [JobAction.HOLD]

"""Which actions make sense for a job, as pages offer them; Slurm has the last word."""

from __future__ import annotations

from collections.abc import Collection

from portal.core.cluster.jobs import JobState
from portal.core.jobs.actions import JobAction
from portal.core.jobs.job import Job

HELD_BY_USER = "JobHeldUser"
HELD_BY_ADMIN = frozenset({"JobHeldAdmin", "JobHoldMaxRequeue"})


def offered(job: Job, admin: bool, states: Collection[JobState] = ()) -> tuple[JobAction, ...]:
    """What can be done to a job, or to an array with tasks in these states.

    A session's job is controlled on the Sessions page. Holds by administrators can be released by
    them only.
    """
    if job.session or job.gone:
        return ()
    present = frozenset(states) or {job.report.state}
    found = []
    if not all(state.over for state in present):
        found.append(JobAction.CANCEL)
    if JobState.PENDING in present:
        found += _of_pending(job, admin, array=bool(states))
    if present & {JobState.RUNNING, JobState.SUSPENDED}:
        found.append(JobAction.REQUEUE)
    return tuple(found)


def _of_pending(job: Job, admin: bool, array: bool) -> list[JobAction]:
    code = (job.report.reason or "").split(",")[0].strip()
    held = code == HELD_BY_USER or code in HELD_BY_ADMIN
    may_release = code == HELD_BY_USER or (admin and code in HELD_BY_ADMIN)
    # Some tasks of an array may be held and others not: its row knows the reason of one of them.
    hold = [JobAction.HOLD] if array or not held else []
    return hold + ([JobAction.RELEASE] if array or may_release else [])

"""End processes whose slurmstepd is gone and whose job is over.

Slurm allocates their cores to other jobs, and nothing else would end them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from portal.node.gpu import slurm
from portal.node.gpu.health.members import ListMembers, orphans
from portal.node.gpu.prolog import Ask

PATIENCE = 2.0
"""Seconds for which a job must be without a slurmstepd."""
MOST_JOBS = 3
"""Jobs for which Slurm is queried per check, since each answer may take seconds."""


def end_lost(
    list_members: ListMembers,
    node: str,
    end: Callable[[int, int], bool],
    unclear: list[int],
    ask: Ask = slurm.ask,
    pause: Callable[[float], None] = time.sleep,
) -> list[str]:
    """End the processes of jobs that Slurm reports as over; returns log messages.

    Processes of jobs that Slurm does not know, or does not report as over, are left alone.
    `unclear` lists these jobs and is kept between checks: other jobs are queried first, and the
    state of each is logged once.
    """
    if not orphans(list_members()):
        return []
    pause(PATIENCE)
    orphaned = orphans(list_members())
    jobs = {member.step.job for member in orphaned}
    unclear[:] = [job for job in unclear if job in jobs]
    messages = []
    for job in [*sorted(jobs - set(unclear)), *unclear][:MOST_JOBS]:
        pids = [member.pid for member in orphaned if member.step.job == job]
        state = _state(ask, job, node)
        if state == "over":
            ended = sum(end(pid, job) for pid in pids)
            messages.append(f"job {job} is over and has no slurmstepd: ended {ended} processes")
        elif job not in unclear and state != "running":
            messages.append(
                f"job {job} has {len(pids)} processes and no slurmstepd, and {state}: left alone"
            )
        # Moved to the end: the job queried least recently comes first.
        unclear[:] = [*(other for other in unclear if other != job), job]
    return messages


def _state(ask: Ask, job: int, node: str) -> str:
    try:
        node_job = ask(job, node)
    except slurm.NoSuchJob:
        return "Slurm does not know it"
    except slurm.SlurmError as error:
        return f"Slurm does not answer ({error})"
    return "over" if node_job.over and not node_job.completing else "running"

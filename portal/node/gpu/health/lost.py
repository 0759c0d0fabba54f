"""Ends processes that Slurm has lost: their slurmstepd is gone, and their job is over.

Slurm gives their cores away, and nothing else would end them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from portal.node.gpu import slurm
from portal.node.gpu.health.members import Look, orphans
from portal.node.gpu.prolog import Ask

PATIENCE = 2.0
"""Seconds for which a job must be without a slurmstepd."""
MOST_JOBS = 3
"""Jobs for which Slurm is asked at a time, since it may not answer for seconds."""


def end_lost(
    look: Look,
    node: str,
    end: Callable[[int, int], bool],
    unclear: list[int],
    ask: Ask = slurm.ask,
    pause: Callable[[float], None] = time.sleep,
) -> list[str]:
    """End the processes of jobs that Slurm calls over; returns what was done, in words.

    Nothing of a job is ended that Slurm does not know, or does not know to be over. These are
    `unclear`, which is kept from check to check: the others are asked about first, and what became
    of one is said once.
    """
    if not orphans(look()):
        return []
    pause(PATIENCE)
    found = orphans(look())
    jobs = {one.step.job for one in found}
    unclear[:] = [job for job in unclear if job in jobs]
    said = []
    for job in [*sorted(jobs - set(unclear)), *unclear][:MOST_JOBS]:
        pids = [one.pid for one in found if one.step.job == job]
        state = _state(ask, job, node)
        if state == "over":
            ended = sum(end(pid, job) for pid in pids)
            said.append(f"job {job} is over and has no slurmstepd: ended {ended} processes")
        elif job not in unclear and state != "running":
            said.append(
                f"job {job} has {len(pids)} processes and no slurmstepd, and {state}: left alone"
            )
        # At the end: the one that was asked about longest ago is the next.
        unclear[:] = [*(other for other in unclear if other != job), job]
    return said


def _state(ask: Ask, job: int, node: str) -> str:
    try:
        found = ask(job, node)
    except slurm.NoSuchJob:
        return "Slurm does not know it"
    except slurm.SlurmError as error:
        return f"Slurm does not answer ({error})"
    return "over" if found.over and not found.completing else "running"

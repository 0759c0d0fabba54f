"""The processes of Slurm's jobs on this node, by the kernel alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from portal.node.gpu.cgroups import PROC, Step
from portal.node.gpu.watchdog.processes import Processes


@dataclass(frozen=True)
class Member:
    """A process in the cgroup of a job."""

    pid: int
    mark: str
    """PID and start time."""
    uid: int | None
    """Who started it; None if that cannot be told. Root's are slurmstepd and what it starts."""
    step: Step
    dying: bool


Look = Callable[[], "list[Member]"]


def members(processes: Processes, proc: Path = PROC) -> Iterator[Member]:
    """All processes in the cgroups of jobs."""
    for pid in sorted(int(file.name) for file in proc.iterdir() if file.name.isdecimal()):
        step, mark = processes.step(pid), processes.mark(pid)
        if step and mark:
            yield Member(pid, mark, processes.uid(pid), step, processes.is_dying(pid))


def stuck(found: Iterable[Member]) -> list[Member]:
    """Users' processes that are dying in steps where nothing of the user's lives any more.

    As long as something lives there, a process may wait for it and be served: a step of which one
    process is killed is not over.
    """
    users = [one for one in found if one.uid]
    living = {one.step for one in users if not one.dying}
    return [one for one in users if one.dying and one.step not in living]


def orphans(found: Iterable[Member]) -> list[Member]:
    """Users' processes in jobs without a slurmstepd, which would end them.

    slurmstepd is in its job's cgroup, with both versions, and only root's processes have its UID.
    """
    every = list(found)
    kept = {one.step.job for one in every if not one.uid}
    return [one for one in every if one.step.job not in kept and not one.dying]

"""The processes of Slurm's jobs on this node, from the kernel alone."""

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
    """Its user's UID; None if unknown. Root's processes are slurmstepd and its helpers."""
    step: Step
    dying: bool


ListMembers = Callable[[], "list[Member]"]


def members(processes: Processes, proc: Path = PROC) -> Iterator[Member]:
    """All processes in the cgroups of jobs."""
    for pid in sorted(int(file.name) for file in proc.iterdir() if file.name.isdecimal()):
        step, mark = processes.step(pid), processes.mark(pid)
        if step and mark:
            yield Member(pid, mark, processes.uid(pid), step, processes.is_dying(pid))


def stuck(processes: Iterable[Member]) -> list[Member]:
    """Return users' dying processes in steps without a living process of the user.

    While another process of the step lives, it may still serve the one that waits for it.
    """
    user_processes = [member for member in processes if member.uid]
    living = {member.step for member in user_processes if not member.dying}
    return [member for member in user_processes if member.dying and member.step not in living]


def orphans(processes: Iterable[Member]) -> list[Member]:
    """Return users' living processes in jobs without a slurmstepd, which would end them.

    slurmstepd is in its job's cgroup, with both cgroup versions, and runs as root.
    """
    listed = list(processes)
    supervised = {member.step.job for member in listed if not member.uid}
    return [member for member in listed if member.step.job not in supervised and not member.dying]

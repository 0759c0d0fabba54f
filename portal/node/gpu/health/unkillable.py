"""Free processes of jobs that SIGKILL does not end, so that Slurm does not drain the node.

A process may wait for a FUSE file system that does not answer, or be stopped at its exit by another
process that traces it. Slurm drains the node for a step with such a process ("Kill task failed").
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from portal.node.gpu.health.fuse import Fuse
from portal.node.gpu.health.members import ListMembers, Member, stuck
from portal.node.gpu.watchdog.processes import Processes

PATIENCE = 3.0
"""Seconds that killed processes have to end by themselves."""
NEXT = 0.2
"""Seconds after which a freed process may wait for its next connection: it closes its files one
after the other."""
AFTER = 1.0
"""Seconds after which a process that awaits no visible connection must await a hidden one."""
LONGEST = 20.0
"""Maximum seconds for aborting connections."""


@dataclass
class Freed:
    """Result of freeing unkillable processes."""

    stuck: list[Member] = field(default_factory=list)
    """The processes that SIGKILL did not end in time."""
    actions: list[tuple[int, str]] = field(default_factory=list)
    """(job, log message) of each action."""
    failed: dict[int, str] = field(default_factory=dict)
    """Log message of each failure, by PID."""

    @property
    def messages(self) -> list[str]:
        """Log messages of all actions and failures."""
        return [message for _, message in self.actions] + list(self.failed.values())


class Unkillable:
    """Frees the processes of jobs that do not end."""

    def __init__(
        self,
        list_members: ListMembers,
        fuse: Fuse,
        processes: Processes,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._list_members = list_members
        self._fuse = fuse
        self._processes = processes
        self._pause = pause
        self._clock = clock

    def free(self, earlier: Collection[str] = ()) -> Freed:
        """Abort the connections for which killed processes wait, and end their tracers.

        If another step of the job lives, it may still serve them: then only processes that were
        already stuck at an earlier call are freed. `earlier` has the marks of those.
        """
        freed = Freed()
        marks = {member.mark for member in stuck(self._list_members())}
        if marks:
            self._pause(PATIENCE)
            listed = self._list_members()
            freed.stuck = [member for member in stuck(listed) if member.mark in marks]
            living = {member.step.job for member in listed if member.uid and not member.dying}
            due = {
                member.mark
                for member in freed.stuck
                if member.step.job not in living or member.mark in earlier
            }
            self._free(due, freed)
        return freed

    def _free(self, due: set[str], freed: Freed) -> None:
        deadline = self._clock() + LONGEST
        hidden = False
        while self._clock() < deadline:
            remaining = [member for member in stuck(self._list_members()) if member.mark in due]
            if not remaining:
                return
            random.shuffle(remaining)  # at a timeout, the next check starts with others
            before = len(freed.actions)
            for member in remaining:
                if self._clock() < deadline:
                    self._free_one(member, hidden, freed)
            if len(freed.actions) > before:
                self._pause(NEXT)
                hidden = False
            elif not hidden:
                self._pause(AFTER)
                hidden = True
            else:
                return

    def _free_one(self, member: Member, hidden: bool, freed: Freed) -> None:
        job, cause = member.step.job, f"since PID {member.pid} could not be killed"
        try:
            for tracer in self._processes.end_tracers(member.pid):
                freed.actions.append((job, f"job {job}: ended PID {tracer}, {cause}: it traced it"))
            waiting = self._fuse.waiting()
            numbers = sorted(
                (self._fuse.hidden_from if hidden else self._fuse.awaited_by)(member, waiting)
            )
            for words in _abort(self._fuse, numbers, waiting):
                freed.actions.append((job, f"job {job}: {words}, {cause}"))
        except (FileNotFoundError, ProcessLookupError):
            return  # it has just ended
        except (OSError, ValueError) as error:
            freed.failed[member.pid] = f"job {job}: PID {member.pid} cannot be freed: {error}"


def _abort(fuse: Fuse, numbers: list[int], waiting: dict[int, int]) -> Iterator[str]:
    """Abort connections; yields one log text per owner."""
    for uid in sorted({waiting[number] for number in numbers}):
        owned = [number for number in numbers if waiting[number] == uid]
        for number in owned:
            fuse.abort(number)
        kind = "connection" if len(owned) == 1 else f"{len(owned)} connections"
        yield f"aborted FUSE {kind} {', '.join(map(str, owned))} of UID {uid}"

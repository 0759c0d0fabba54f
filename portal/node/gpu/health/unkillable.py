"""Frees processes of jobs that SIGKILL does not end, so that Slurm does not drain the node.

A process may wait for a FUSE file system that does not answer, or be stopped at its exit by another
process that traces it. Slurm drains the node for a step with such a process ("Kill task failed").
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from portal.node.gpu.health.fuse import Fuse
from portal.node.gpu.health.members import Look, Member, stuck
from portal.node.gpu.watchdog.processes import Processes

PATIENCE = 3.0
"""Seconds that killed processes have to end by themselves."""
NEXT = 0.2
"""Seconds after which a process that waited waits for the next connection: it closes its files one
after the other."""
AFTER = 1.0
"""Seconds after which a process that does not wait for a visible connection waits for another."""
LONGEST = 20.0
"""Seconds in which connections are aborted, at most."""


@dataclass
class Freed:
    """What was found and done."""

    stuck: list[Member] = field(default_factory=list)
    """The processes that SIGKILL did not end in time."""
    done: list[tuple[int, str]] = field(default_factory=list)
    """Each job for which something was done, and what, in words."""
    failed: dict[int, str] = field(default_factory=dict)
    """Why nothing could be done, by PID."""

    @property
    def words(self) -> list[str]:
        """All that was done, and what failed."""
        return [words for _, words in self.done] + list(self.failed.values())


class Unkillable:
    """The processes of jobs, of which some may not end."""

    def __init__(
        self,
        look: Look,
        fuse: Fuse,
        processes: Processes,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look = look
        self._fuse = fuse
        self._processes = processes
        self._pause = pause
        self._clock = clock

    def free(self, earlier: Collection[str] = ()) -> Freed:
        """Abort the connections for which killed processes wait, and end who traces them.

        Where another step of the job lives and may still serve them, only what was stuck at an
        earlier call, too, is looked at: `earlier` are the marks of those.
        """
        freed = Freed()
        first = {one.mark for one in stuck(self._look())}
        if first:
            self._pause(PATIENCE)
            every = self._look()
            freed.stuck = [one for one in stuck(every) if one.mark in first]
            living = {one.step.job for one in every if one.uid and not one.dying}
            due = {
                one.mark for one in freed.stuck if one.step.job not in living or one.mark in earlier
            }
            self._free(due, freed)
        return freed

    def _free(self, due: set[str], freed: Freed) -> None:
        until = self._clock() + LONGEST
        hidden = False
        while self._clock() < until:
            left = [one for one in stuck(self._look()) if one.mark in due]
            if not left:
                return
            random.shuffle(left)  # should the time be over, others come first at the next check
            before = len(freed.done)
            for one in left:
                if self._clock() < until:
                    self._free_one(one, hidden, freed)
            if len(freed.done) > before:
                self._pause(NEXT)
                hidden = False
            elif not hidden:
                self._pause(AFTER)
                hidden = True
            else:
                return

    def _free_one(self, one: Member, hidden: bool, freed: Freed) -> None:
        job, because = one.step.job, f"since PID {one.pid} could not be killed"
        try:
            for tracer in self._processes.end_tracers(one.pid):
                freed.done.append((job, f"job {job}: ended PID {tracer}, {because}: it traced it"))
            waiting = self._fuse.waiting()
            numbers = sorted((self._fuse.hidden if hidden else self._fuse.of)(one, waiting))
            for words in _abort(self._fuse, numbers, waiting):
                freed.done.append((job, f"job {job}: {words}, {because}"))
        except (FileNotFoundError, ProcessLookupError):
            return  # it has just ended
        except (OSError, ValueError) as error:
            freed.failed[one.pid] = f"job {job}: PID {one.pid} cannot be freed: {error}"


def _abort(fuse: Fuse, numbers: list[int], waiting: dict[int, int]) -> Iterator[str]:
    """Abort connections; yields a text for each of their users."""
    for uid in sorted({waiting[number] for number in numbers}):
        theirs = [number for number in numbers if waiting[number] == uid]
        for number in theirs:
            fuse.abort(number)
        kind = "connection" if len(theirs) == 1 else f"{len(theirs)} connections"
        yield f"aborted FUSE {kind} {', '.join(map(str, theirs))} of UID {uid}"

"""Ends what waits for a FUSE file system that no longer answers, so that it can be killed.

A process that waits for a FUSE request cannot be killed until its daemon answers, or the daemon's
descriptor is closed everywhere. Whoever hands that to another job and cancels the first one has
Slurm drain the node ("Kill task failed"). Aborting the connection, as root can, ends the waiting.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from portal.gpu import untrusted
from portal.gpu.cgroups import PROC
from portal.gpu.health.members import Look, Member, stuck

CONNECTIONS = Path("/sys/fs/fuse/connections")
"""A folder for each connection on this machine, named by the device number of its mounts. The
connection's user owns it."""
PATIENCE = 3.0
"""Seconds that killed processes have to end by themselves."""
AFTER = 1.0
"""Seconds after which an aborted connection has let its processes go."""
ROOT = 0
WAITS = "request_wait_answer"
"""The kernel's function in which a process waits for a FUSE daemon (fs/fuse/dev.c)."""


class Fuse:
    """The FUSE connections of users' on this node."""

    def __init__(self, connections: Path = CONNECTIONS, proc: Path = PROC) -> None:
        self._connections = connections
        self._proc = proc
        self._ask = untrusted.Patient["set[int]"](0.5)

    def waiting(self) -> dict[int, int]:
        """The UID of each connection that has not answered a request; without root's."""
        if self._connections == CONNECTIONS and not os.path.ismount(CONNECTIONS):
            _mount()
        found: dict[int, int] = {}
        for folder in self._connections.iterdir():
            try:
                uid = folder.stat().st_uid
                if (
                    uid != ROOT
                    and folder.name.isdecimal()
                    and int(untrusted.read(folder / "waiting"))
                ):
                    found[int(folder.name)] = uid
            except (OSError, ValueError):
                continue  # it has just ended
        return found

    def of(self, one: Member, waiting: dict[int, int]) -> set[int]:
        """Those of the waiting connections that a process can see among its mounts.

        Of others than its own user only where the node itself does not see them: what is mounted
        for everybody, or by somebody else, is nobody's to abort.
        """
        seen = self._ask(one.pid, lambda: self._mounted(one.pid)) or set()
        shared = self._mounted(1)
        return {n for n in seen & set(waiting) if waiting[n] == one.uid or n not in shared}

    def hidden(self, one: Member, waiting: dict[int, int]) -> set[int]:
        """Those that a process may wait for by a mount that is gone: all of its user's."""
        threads = (self._proc / str(one.pid) / "task").iterdir()
        if not any(WAITS in untrusted.read(thread / "wchan") for thread in threads):
            return set()
        return {number for number, uid in waiting.items() if uid == one.uid}

    def abort(self, number: int) -> None:
        """Let all requests of a connection fail, now and from now on."""
        (self._connections / str(number) / "abort").write_bytes(b"1")

    def _mounted(self, pid: int) -> set[int]:
        """The connections of all FUSE mounts that a process can see; raises OSError."""
        found = set()
        for line in untrusted.lines(untrusted.read(self._proc / str(pid) / "mountinfo")):
            words = line.split(" ")  # the kernel escapes spaces in all that users name
            kind = words[words.index("-", 6) + 1]
            if kind == "fuse" or kind.startswith("fuse."):
                found.add(int(words[2].partition(":")[2]))
        return found


def free(
    look: Look,
    fuse: Fuse,
    earlier: Collection[str] = (),
    pause: Callable[[float], None] = time.sleep,
) -> tuple[list[Member], list[str]]:
    """Abort the connections for which killed processes wait.

    Returns the processes that waited, and what was done in words. Where another step of the job
    lives and may still serve them, only what has waited at an earlier call, too, is looked at:
    `earlier` are the marks of those.
    """
    first = {one.mark for one in stuck(look())}
    if not first:
        return [], []
    pause(PATIENCE)
    every = look()
    found = [one for one in stuck(every) if one.mark in first]
    living = {one.step.job for one in every if one.uid and not one.dying}
    due = [one for one in found if one.step.job not in living or one.mark in earlier]
    said = list(_abort(fuse, due, fuse.of))
    if due:
        pause(AFTER)
        left = {one.mark for one in stuck(look())}
        said += _abort(fuse, [one for one in due if one.mark in left], fuse.hidden)
    return found, said


def _abort(
    fuse: Fuse, due: Iterable[Member], which: Callable[[Member, dict[int, int]], set[int]]
) -> Iterator[str]:
    for one in due:
        try:
            waiting = fuse.waiting()
            for number in sorted(which(one, waiting)):
                fuse.abort(number)
                yield (
                    f"job {one.step.job}: aborted FUSE connection {number} of UID "
                    f"{waiting[number]}, since PID {one.pid} could not be killed"
                )
        except (OSError, ValueError) as error:
            yield f"job {one.step.job}: PID {one.pid} cannot be freed: {error}"


def _mount() -> None:
    """Mount the kernel's list of connections, where the system has not; raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"fusectl", os.fsencode(CONNECTIONS), b"fusectl", 0, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(CONNECTIONS))

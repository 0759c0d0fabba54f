"""The FUSE connections of a node, and those that a process may wait for.

A process that waits for a FUSE request cannot be killed until its daemon answers, or the daemon's
descriptor is closed everywhere. Aborting the connection, as root can, ends the waiting.
"""

from __future__ import annotations

import ctypes
import os
import pwd
from contextlib import suppress
from pathlib import Path

from portal.node.gpu import untrusted
from portal.node.gpu.cgroups import PROC
from portal.node.gpu.health.members import Member

CONNECTIONS = Path("/sys/fs/fuse/connections")
"""A folder for each connection on this machine, named by the device number of its mounts. The
connection's user owns it."""
SUBUID = Path("/etc/subuid")
ROOT = 0


class Fuse:
    """Users' FUSE connections on this node."""

    def __init__(
        self, connections: Path = CONNECTIONS, proc: Path = PROC, subuid: Path = SUBUID
    ) -> None:
        self._connections = connections
        self._proc = proc
        self._subuid = subuid
        self._ask = untrusted.TimedQuery["set[int]"](0.5)
        self._ask_name = untrusted.TimedQuery[str](0.5)

    def waiting(self) -> dict[int, int]:
        """Return the owner's UID of each connection with an unanswered request, except root's."""
        if self._connections == CONNECTIONS and not os.path.ismount(CONNECTIONS):
            _mount()
        owners: dict[int, int] = {}
        for folder in self._connections.iterdir():
            try:
                uid = folder.stat().st_uid
                if (
                    uid != ROOT
                    and folder.name.isdecimal()
                    and int(untrusted.read(folder / "waiting"))
                ):
                    owners[int(folder.name)] = uid
            except (OSError, ValueError):
                continue  # it has just ended
        return owners

    def awaited_by(self, member: Member, waiting: dict[int, int]) -> set[int]:
        """Return the waiting connections among a process's mounts, if the process itself waits.

        Another user's connection counts only if the node's own mount namespace does not have it:
        one that is mounted for all users, or by another user, must not be aborted.
        """
        if not self._in_kernel(member.pid):
            return set()
        visible = self._ask(member.pid, lambda: self._mounted(member.pid)) or set()
        shared = self._mounted(1)
        return {n for n in visible & set(waiting) if waiting[n] == member.uid or n not in shared}

    def hidden_from(self, member: Member, waiting: dict[int, int]) -> set[int]:
        """Return the connections that a process may await without a mount: all of its user's."""
        if member.uid is None or not self._in_kernel(member.pid):
            return set()
        return {
            n
            for n, uid in waiting.items()
            if uid == member.uid or self._is_subordinate(member.uid, uid)
        }

    def abort(self, number: int) -> None:
        """Let all requests of a connection fail, now and from now on."""
        (self._connections / str(number) / "abort").write_bytes(b"1")

    def _mounted(self, pid: int) -> set[int]:
        """Return the connections of all FUSE mounts visible to a process; raises OSError."""
        numbers = set()
        for line in untrusted.lines(untrusted.read(self._proc / str(pid) / "mountinfo")):
            words = line.split(" ")  # the kernel escapes spaces in names
            kind = words[words.index("-", 6) + 1]
            if kind == "fuse" or kind.startswith("fuse."):
                numbers.add(int(words[2].partition(":")[2]))
        return numbers

    def _in_kernel(self, pid: int) -> bool:
        """Whether a thread of a process is in uninterruptible sleep (state D)."""
        threads = (self._proc / str(pid) / "task").iterdir()
        states = (untrusted.read(thread / "stat").rpartition(")")[2].split() for thread in threads)
        return any(fields[:1] == ["D"] for fields in states)

    def _is_subordinate(self, owner: int, uid: int) -> bool:
        """Whether a UID is one of the owner's subordinate UIDs (subuid(5))."""
        name = self._ask_name(owner, lambda: pwd.getpwuid(owner).pw_name)
        with suppress(OSError):
            for line in untrusted.lines(untrusted.read(self._subuid)):
                user, _, ids = line.partition(":")
                first, _, count = ids.partition(":")
                matches = user in (name, str(owner)) and first.isdecimal() and count.isdecimal()
                if matches and int(first) <= uid < int(first) + int(count):
                    return True
        return False


def _mount() -> None:
    """Mount fusectl where the system has not; raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"fusectl", os.fsencode(CONNECTIONS), b"fusectl", 0, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(CONNECTIONS))

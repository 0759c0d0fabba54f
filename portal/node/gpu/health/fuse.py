"""The FUSE connections of a node, and which of them a process may wait for.

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
    """The FUSE connections of users' on this node."""

    def __init__(
        self, connections: Path = CONNECTIONS, proc: Path = PROC, subuid: Path = SUBUID
    ) -> None:
        self._connections = connections
        self._proc = proc
        self._subuid = subuid
        self._ask = untrusted.Patient["set[int]"](0.5)
        self._ask_name = untrusted.Patient[str](0.5)

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
        """Those of the waiting connections that a process can see among its mounts, if it waits.

        Of others than its own user only where the node itself does not see them: what is mounted
        for everybody, or by somebody else, is nobody's to abort.
        """
        if not self._in_kernel(one.pid):
            return set()
        seen = self._ask(one.pid, lambda: self._mounted(one.pid)) or set()
        shared = self._mounted(1)
        return {n for n in seen & set(waiting) if waiting[n] == one.uid or n not in shared}

    def hidden(self, one: Member, waiting: dict[int, int]) -> set[int]:
        """Those that a process may wait for by a mount that is gone: all of its user's."""
        if one.uid is None or not self._in_kernel(one.pid):
            return set()
        return {n for n, uid in waiting.items() if uid == one.uid or self._lends(one.uid, uid)}

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

    def _in_kernel(self, pid: int) -> bool:
        """Whether a thread waits uninterruptibly: for an answer, or for whoever waits for one."""
        threads = (self._proc / str(pid) / "task").iterdir()
        states = (untrusted.read(thread / "stat").rpartition(")")[2].split() for thread in threads)
        return any(fields[:1] == ["D"] for fields in states)

    def _lends(self, owner: int, uid: int) -> bool:
        """Whether a UID is one of a user's subordinate ones (subuid(5))."""
        name = self._ask_name(owner, lambda: pwd.getpwuid(owner).pw_name)
        with suppress(OSError):
            for line in untrusted.lines(untrusted.read(self._subuid)):
                user, _, ids = line.partition(":")
                first, _, count = ids.partition(":")
                ours = user in (name, str(owner)) and first.isdecimal() and count.isdecimal()
                if ours and int(first) <= uid < int(first) + int(count):
                    return True
        return False


def _mount() -> None:
    """Mount the kernel's list of connections, where the system has not; raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"fusectl", os.fsencode(CONNECTIONS), b"fusectl", 0, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(CONNECTIONS))

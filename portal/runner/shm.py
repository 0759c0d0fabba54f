"""Gives the session a /dev/shm of the size that was asked for.

Apptainer's own has half of the node's memory, and no option of Apptainer changes that. A user may
mount a tmpfs in a user namespace of one's own, so the runner enters one in which everybody stays
who they are, and mounts there; all apps are its children and see the same. What is written there
is charged to the job by its cgroup, as all memory is.
"""

from __future__ import annotations

import ctypes
import os

from .log import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .spec import SharedMemory

PLACE = "/dev/shm"  # noqa: S108 - the place itself, not a file in it
# From sched.h and mount.h; Python's own os.unshare came with 3.12.
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_NOSUID, MS_NODEV = 2, 4


class NotMounted(Exception):
    """The session cannot have the shared memory that was asked for."""


def resize(wanted: SharedMemory | None) -> None:
    """Mount a new /dev/shm; raise NotMounted if it must be and cannot.

    Must be called while the process has one thread.
    """
    if wanted is None:
        return
    user, group = os.getuid(), os.getgid()  # in the new namespace nobody has a number at first
    try:
        library = ctypes.CDLL(None, use_errno=True)
        _must(library.unshare(CLONE_NEWUSER | CLONE_NEWNS))
        _map_identity(user, group)
        _mount(library, wanted.mb)
    except OSError as error:
        text = f"this node does not let {PLACE} have {wanted.mb} MB: {error}"
        if wanted.must:
            raise NotMounted(text) from None
        say(f"{text}; it keeps the size it has")


def _map_identity(user: int, group: int) -> None:
    for file, text in (
        ("setgroups", "deny"),  # the kernel's condition for writing the next two
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as target:
            target.write(text)


def _mount(library: ctypes.CDLL, mb: int) -> None:
    options = f"size={mb}m,mode=1777".encode()
    place = PLACE.encode()
    _must(library.mount(b"tmpfs", place, b"tmpfs", MS_NOSUID | MS_NODEV, options))


def _must(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

"""The namespace of mounts in which the runner arranges what all of its apps see.

A user may mount only in a user namespace of one's own, so the runner enters one in which everybody
stays who they are. All apps are its children and see the same; nobody outside sees any of it.
"""

from __future__ import annotations

import ctypes
import os

# From sched.h and mount.h; Python's own os.unshare came with 3.12.
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18


class NotGranted(Exception):
    """The session cannot have what was asked for, in words for its owner."""


class Namespace:
    """Entered with the first mount; raises OSError where the node does not let us.

    Must be used while the process has one thread.
    """

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None

    def mount_memory(self, place: str, mb: int) -> None:
        """Mount a new file system in memory."""
        options = f"size={mb}m,mode=1777".encode()
        self._mount(b"tmpfs", place, b"tmpfs", MS_NOSUID | MS_NODEV, options)

    def bind(self, source: str, target: str) -> None:
        """Show a file or a folder at another place, with all that is mounted below it."""
        self._mount(source.encode(), target, None, MS_BIND | MS_REC, None)

    def _mount(
        self, source: bytes, target: str, kind: bytes | None, flags: int, options: bytes | None
    ) -> None:
        _must(self._enter().mount(source, target.encode(), kind, flags, options))

    def _enter(self) -> ctypes.CDLL:
        if self._library is None:
            user, group = os.getuid(), os.getgid()  # nobody has a number in there at first
            library = ctypes.CDLL(None, use_errno=True)
            _must(library.unshare(CLONE_NEWUSER | CLONE_NEWNS))
            _map_identity(user, group)
            # What is bound at one place must not show up at copies of that place as well.
            _must(library.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
            self._library = library
        return self._library


def _map_identity(user: int, group: int) -> None:
    for file, text in (
        ("setgroups", "deny"),  # the kernel's condition for writing the next two
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as target:
            target.write(text)


def _must(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

"""The mount namespace that the runner sets up for all of its apps.

Unprivileged users may mount only in their own user namespace, so the runner enters one with an
identity mapping. All apps are its children and share the mounts; no other process sees them.
"""

from __future__ import annotations

import ctypes
import os

# From sched.h and mount.h; os.unshare is new in Python 3.12.
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18


class NotGranted(Exception):
    """The session cannot get a requested resource; the text is for its owner."""


class Namespace:
    """A namespace, entered with the first mount; raises OSError if the node does not permit it.

    Must be used while the process has one thread.
    """

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None

    def mount_memory(self, path: str, mb: int) -> None:
        """Mount a new tmpfs."""
        options = f"size={mb}m,mode=1777".encode()
        self._mount(b"tmpfs", path, b"tmpfs", MS_NOSUID | MS_NODEV, options)

    def bind(self, source: str, target: str) -> None:
        """Bind-mount a file or folder, with all mounts below it."""
        self._mount(source.encode(), target, None, MS_BIND | MS_REC, None)

    def _mount(
        self, source: bytes, target: str, kind: bytes | None, flags: int, options: bytes | None
    ) -> None:
        _must(self._enter().mount(source, target.encode(), kind, flags, options))

    def _enter(self) -> ctypes.CDLL:
        if self._library is None:
            user, group = os.getuid(), os.getgid()  # before unshare: unmapped afterwards
            library = ctypes.CDLL(None, use_errno=True)
            _must(library.unshare(CLONE_NEWUSER | CLONE_NEWNS))
            _map_identity(user, group)
            # Private: new mounts must not propagate to copies of their mount points.
            _must(library.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
            self._library = library
        return self._library


def _map_identity(user: int, group: int) -> None:
    for file, text in (
        ("setgroups", "deny"),  # required by the kernel before the next two
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as target:
            target.write(text)


def _must(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

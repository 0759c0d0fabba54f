"""Gives the session a /dev/shm of the requested size.

Apptainer's own has half of the node's memory, which no option of Apptainer changes, so another one
is mounted over it. Its content is charged to the job's cgroup, like all memory.
"""

from __future__ import annotations

from ..log import say
from .namespace import NotGranted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..spec import SharedMemory
    from .namespace import Namespace

MOUNT_POINT = "/dev/shm"  # noqa: S108 - the mount point, not a file in it


def resize(namespace: Namespace, requested: SharedMemory | None) -> None:
    """Mount a new /dev/shm; raise NotGranted if that fails and it is required."""
    if requested is None:
        return
    try:
        namespace.mount_memory(MOUNT_POINT, requested.mb)
    except OSError as error:
        text = f"this node does not let {MOUNT_POINT} have {requested.mb} MB: {error}"
        if requested.must:
            raise NotGranted(text) from None
        say(f"{text}; it keeps the size it has")

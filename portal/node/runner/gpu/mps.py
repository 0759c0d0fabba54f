"""NVIDIA's MPS: sessions are clients of the node's server, which limits them.

Clients and the server exchange data in /dev/shm, and a session's own is private. So the node's
daemon has a /dev/shm for this purpose alone, in the folder of its pipes, and it becomes the
session's. All sessions of such a kind have it in common; nothing else of the node's is shared.
"""

from __future__ import annotations

import os

from ..log import say
from ..mounts.namespace import NotGranted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..mounts.namespace import Namespace

MOUNT = "/opt/slipway-gpu-mps"
"""The pipes of the node's daemon, and its shared memory, if the session's kind has MPS."""
MEMORY = "/dev/shm"  # noqa: S108 - the mount point, not a file in it
TELL = "Tell the administrators."


def check_daemon(folder: str) -> None:
    """Raise NotGranted without the node's daemon: CUDA would run without it, and its limits."""
    if not os.path.exists(f"{folder}/control"):
        raise NotGranted(f"this node's MPS, which shares its GPU out, does not run. {TELL}")
    if not os.path.isdir(f"{folder}/shm"):
        raise NotGranted(
            f"this node's MPS has no shared memory for its sessions (the folder shm). {TELL}"
        )


def join(namespace: Namespace, folder: str, memory: str) -> None:
    """Give the session the daemon's shared memory as its own; raise NotGranted on failure."""
    try:
        namespace.bind(f"{folder}/shm", memory)
    except OSError as error:
        raise NotGranted(
            f"this node does not let the session join its MPS: {error}. {TELL}"
        ) from None


def common_memory(mb: int, *, must: bool) -> None:
    """Log that a size of /dev/shm was not granted; raise NotGranted if it `must` be."""
    text = (
        f"a session that shares its GPU by MPS has {MEMORY} in common with the others, of the size "
        f"that the node has set, not of {mb} MB"
    )
    if must:
        raise NotGranted(text)
    say(f"{text}; files in it are seen by users of the same kind of GPU")

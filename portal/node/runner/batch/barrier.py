"""Tasks of a step that share a container wait for each other before any of them runs.

Apptainer's --sharens lets later tasks enter the namespaces of the first one, which must not have
ended by then: on a busy node a task such as `hostname` has.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 60.0
"""A task that has not joined by then has failed to start, which srun handles."""
_PAUSE = 0.01
_COUNTS = re.compile(r"(\d{1,7})(?:\(x(\d{1,7})\))?")


def local_tasks(environment: Mapping[str, str]) -> int:
    """Number of this step's tasks on this node; 1 if Slurm does not say."""
    counts: list[int] = []
    try:
        node = int(environment["SLURM_NODEID"])
        for part in environment["SLURM_STEP_TASKS_PER_NODE"].split(","):
            match = _COUNTS.fullmatch(part)
            if match is None:
                return 1
            counts += [int(match[1])] * min(int(match[2] or 1), node + 1)
        return counts[node]
    except (KeyError, ValueError, IndexError):
        return 1


def wait_for_all(environment: Mapping[str, str], seconds: float = SECONDS) -> None:
    """Wait until all tasks of this step on this node are here; not longer than `seconds`."""
    count = local_tasks(environment)
    if count < 2:
        return
    job, step = environment.get("SLURM_JOB_ID", ""), environment.get("SLURM_STEP_ID", "")
    address = f"\0slipway-step-{os.getuid()}-{job}.{step}"
    deadline = time.monotonic() + seconds
    with contextlib.suppress(OSError):
        if environment.get("SLURM_LOCALID") == "0":
            _gather(address, count - 1, deadline)
        else:
            _join(address, deadline)


def _gather(address: str, others: int, deadline: float) -> None:
    """Let the others go once all of them have connected."""
    with contextlib.ExitStack() as connected:
        listener = connected.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen(others)
        while others and (left := deadline - time.monotonic()) > 0:
            listener.settimeout(left)
            connection, _ = listener.accept()
            connected.enter_context(connection)
            others -= _is_ours(connection)


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other end is a process of the same user."""
    size = struct.calcsize("3i")
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    user: int = struct.unpack("3i", peer)[1]
    return user == os.getuid()


def _join(address: str, deadline: float) -> None:
    """Wait for the first task, which may come later."""
    while (left := deadline - time.monotonic()) > 0:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(address)
            except (ConnectionRefusedError, FileNotFoundError, BlockingIOError):
                time.sleep(_PAUSE)
                continue
            if _is_ours(connection):  # any user of the node could listen there
                connection.settimeout(left)
                connection.recv(1)  # returns when the first task closes the connection
        return

"""The container of all tasks of a step on one node: the first task's, which the others enter.

MPI's processes access each other's memory. If all of them were started by Apptainer's --sharens,
each Apptainer would have to be a child of slurmstepd, which signals its children: in the ones that
enter a container, Apptainer dies of that.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time

from portal.node.batch.execute import sockets
from portal.node.batch.execute.container import ContainerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 60.0
"""Timeout of the first task's container; Slurm starts all tasks at once."""
_PAUSE = 0.01


def is_shared(environment: Mapping[str, str]) -> bool:
    """Whether a step has several tasks."""
    return environment.get("SLURM_STEP_NUM_TASKS", "1") != "1"


def is_first(environment: Mapping[str, str]) -> bool:
    """Whether this task creates the container."""
    return environment.get("SLURM_LOCALID", "0") == "0"


def name_of(token: str) -> str:
    """Return the first task's socket name, the same for all tasks with this one's parent."""
    return f"slipway-{token}-{os.getppid()}"


class FirstTask:
    """Tells the other tasks how to enter the container."""

    def __init__(self, name: str) -> None:
        self._listener = sockets.listen(name)

    def tell(self, instance: str) -> None:
        """Send Apptainer's name of the container to each client, in the background."""
        threading.Thread(target=self._serve, args=(instance,), name="shared", daemon=True).start()

    def _serve(self, instance: str) -> None:
        while True:
            with contextlib.suppress(OSError), sockets.accept(self._listener) as connection:
                connection.sendall(os.fsencode(instance))


def instance_of(name: str, seconds: float = SECONDS) -> str:
    """Apptainer's name of the first task's container; raises ContainerError if there is none."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(f"\0{name}")
                if sockets.peer(connection)[1] != os.getuid():
                    break
                instance = b"".join(iter(lambda: connection.recv(4096), b""))
            except ConnectionRefusedError:
                time.sleep(_PAUSE)
                continue
            except OSError:
                break
        if instance:
            return os.fsdecode(instance)
        break
    node = os.environ.get("SLURMD_NODENAME", "this node")
    raise ContainerError(f"the first task of this step on {node} has not started its container")

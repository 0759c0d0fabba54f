"""The supervisor of this script or task, outside of the container (node/batch/execute/launcher.py).

It sends the program's environment, and gets the program's PID and wait status.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct

from .image_variables import from_job, pairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SUPERVISOR, SLURM = "SLIPWAY_SUPERVISOR", "SLIPWAY_SLURM"
"""As in portal/node/batch/execute/environment.py."""
PATIENCE = 10.0
"""Seconds that the supervisor may take to end the commands of a script that has ended."""
_OF_THE_JOB = ("HOME", "PWD", "PS1", "PROMPT_COMMAND")
_PREFIXES = ("APPTAINER", "SINGULARITY")
_MOUNTS = ("APPTAINER_BIND", "SINGULARITY_BIND")
"""Apptainer's lists of our mounts."""


def connect(name: str) -> socket.socket:
    """Connect to an abstract socket of the same user; raises OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(f"\0{name}")
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    if struct.unpack("3i", peer)[1] != os.getuid():  # the name is free once its owner has ended
        connection.close()
        raise PermissionError("another user's process answers")
    return connection


class Supervisor:
    """The connection to the supervisor; raises OSError."""

    def __init__(self, name: str) -> None:
        self._connection = connect(name)
        self._stream = self._connection.makefile("rb")
        instance = os.environ.get("APPTAINER_INSTANCE", "")
        self._connection.sendall(b"instance %s\n" % os.fsencode(instance))

    def environment(self) -> dict[str, str]:
        """The job's environment, byte for byte."""
        (size,) = struct.unpack("=I", self._stream.read(4))
        return pairs(self._stream.read(size))

    def began(self, process: int) -> None:
        """Report the process to which signals must be sent."""
        with contextlib.suppress(OSError):
            self._connection.sendall(b"began %d\n" % process)

    def ended(self, status: int) -> None:
        """Report the program's wait status; returns when nothing outside needs the container."""
        with contextlib.suppress(OSError):
            self._connection.settimeout(PATIENCE)
            self._connection.sendall(b"ended %d\n" % status)
            self._stream.read(1)


def merged(container: Mapping[str, str], job: Mapping[str, str]) -> dict[str, str]:
    """Return the program's environment: the job's, overridden by the image's own variables.

    Variables that the image derives from the caller's are derived from the job's
    (image_variables.py). The node's library path is not for the image's programs. Apptainer's
    variables keep the job's values; those that only Apptainer has set mark this as a container.
    """
    environment = {name: value for name, value in job.items() if name != "LD_LIBRARY_PATH"}
    for name, value in container.items():
        of_job = name in _OF_THE_JOB or (name in job and name.startswith(_PREFIXES))
        if not of_job and name != SUPERVISOR and name not in _MOUNTS:
            environment[name] = value
    return environment | from_job(container, job)

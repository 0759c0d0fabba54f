"""The supervisor of this script or task, outside of the container (node/batch/execute/launcher.py).

It gives the environment of the program, and is told when that begins and how it ends.
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
"""Apptainer lists what we have mounted."""


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
    """The connection to it; raises OSError."""

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
        """Tell where signals have to be sent from now on."""
        with contextlib.suppress(OSError):
            self._connection.sendall(b"began %d\n" % process)

    def ended(self, status: int) -> None:
        """Tell how the program ended; returns when nothing outside needs the container."""
        with contextlib.suppress(OSError):
            self._connection.settimeout(PATIENCE)
            self._connection.sendall(b"ended %d\n" % status)
            self._stream.read(1)


def merged(container: Mapping[str, str], job: Mapping[str, str]) -> dict[str, str]:
    """The program's environment: the job's, in which the image's own variables come first.

    Those that the image makes of the caller's are made of the job's (image_variables.py). Libraries
    of the node are not for programs of the image. Apptainer's variables that the job has are the
    job's; those that Apptainer has set tell that this is a container.
    """
    found = {name: value for name, value in job.items() if name != "LD_LIBRARY_PATH"}
    for name, value in container.items():
        of_job = name in _OF_THE_JOB or (name in job and name.startswith(_PREFIXES))
        if not of_job and name != SUPERVISOR and name not in _MOUNTS:
            found[name] = value
    return found | from_job(container, job)

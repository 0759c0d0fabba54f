"""The job's environment: byte for byte the script's, and next to nothing of it Apptainer's.

Almost every option of Apptainer has a variable, and its shell drops or changes others. So the
launcher in the container gets the environment from us (launcher.py).
"""

from __future__ import annotations

import base64
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PASSED = frozenset("DBUS_SESSION_BUS_ADDRESS HOME LOGNAME PATH TMPDIR USER XDG_RUNTIME_DIR".split())
"""What Apptainer needs to find its helpers, its folders and the user's systemd."""
SUPERVISOR = "SLIPWAY_SUPERVISOR"
"""Where the launcher finds the supervisor (node/runner/batch/command.py)."""
SLURM = "SLIPWAY_SLURM"
"""Where Slurm's commands find the node's (node/runner/batch/slurm_client.py)."""


def restore(encoded: bytes) -> None:
    """Have the environment that the job's script began with, which a shell has changed since.

    `encoded`: /proc/PID/environ in base64; nothing if it could not be read. Raises ValueError.
    """
    pairs = base64.b64decode(encoded).split(b"\0")
    found = dict(pair.split(b"=", 1) for pair in pairs if is_pair(pair))
    if found:
        os.environb.clear()
        os.environb.update(found)


def for_apptainer(environment: Mapping[str, str], **names: str) -> dict[str, str]:
    """The environment of Apptainer; `names`: variables of ours."""
    found = {name: value for name, value in environment.items() if name in PASSED}
    # Of the NVIDIA Container CLI, where the site has Apptainer use it.
    found.update((name, x) for name, x in environment.items() if name.startswith("NVIDIA_"))
    return {**found, **names}


def block() -> bytes:
    """This process's environment as the kernel has one, for the launcher."""
    return b"\0".join(name + b"=" + value for name, value in os.environb.items() if name)


def is_pair(entry: bytes) -> bool:
    """Whether it has a name and a value; anybody can put anything into an environment."""
    return b"=" in entry and not entry.startswith(b"=")

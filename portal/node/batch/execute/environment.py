"""The job's environment: the script gets it byte for byte, Apptainer almost nothing of it.

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
"""Variables that Apptainer needs to find its helpers, its folders and the user's systemd."""
SUPERVISOR = "SLIPWAY_SUPERVISOR"
"""Socket of the supervisor, for the launcher (node/runner/batch/command.py)."""
SLURM = "SLIPWAY_SLURM"
"""Socket of the step server, for Slurm's clients (node/runner/batch/slurm_client.py)."""


def restore(encoded: bytes) -> None:
    """Restore the environment with which the job's script began; a shell has changed it since.

    `encoded`: /proc/PID/environ in base64; nothing if it could not be read. Raises ValueError.
    """
    pairs = base64.b64decode(encoded).split(b"\0")
    variables = dict(pair.split(b"=", 1) for pair in pairs if is_pair(pair))
    if variables:
        os.environb.clear()
        os.environb.update(variables)


def for_apptainer(environment: Mapping[str, str], **names: str) -> dict[str, str]:
    """Return the environment of Apptainer; `names`: Slipway's own variables."""
    passed = {name: value for name, value in environment.items() if name in PASSED}
    # For the NVIDIA Container CLI, if the site configured Apptainer to use it.
    passed.update((name, x) for name, x in environment.items() if name.startswith("NVIDIA_"))
    return {**passed, **names}


def block() -> bytes:
    """Return this process's environment in the kernel's format, for the launcher."""
    return b"\0".join(name + b"=" + value for name, value in os.environb.items() if name)


def is_pair(entry: bytes) -> bool:
    """Whether an entry has a name and a value; an environment may contain any bytes."""
    return b"=" in entry and not entry.startswith(b"=")

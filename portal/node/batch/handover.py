"""Data that is handed to the nodes in environment variables.

Slurm hands variables that begin with SLURM_ to every job and step, whatever --export says.
"""

from __future__ import annotations

import base64
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

REQUEST = "SLURM_SLIPWAY_REQUEST"
"""The request of a step (request.py)."""
VARIABLES = "SLURM_SLIPWAY_ENV"
"""Variables of --env-file: a job's environment is secret, unlike its script and command line."""
STEP = "SLURM_SLIPWAY_STEP"
"""A step's folder, the variables that have other values outside of the container, and a secret
token by which its tasks find each other on a node."""


def encode(value: object) -> str:
    """Encode a value as one word without special characters."""
    return base64.b64encode(json.dumps(value).encode("utf-8", "surrogateescape")).decode("ascii")


def decode(text: str) -> str:
    """The JSON of an encoded value; raises ValueError."""
    return base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")


CONTAINER_MADE = frozenset(
    f"{prefix}_{name}"
    for prefix in ("APPTAINER", "SINGULARITY")
    for name in "APPNAME COMMAND CONTAINER ENVIRONMENT INSTANCE NAME SHARENS_MASTER".split()
)
"""Variables that Apptainer sets in containers; others with its prefixes are the user's."""
_OTHER = CONTAINER_MADE | set("PATH USER_PATH LD_LIBRARY_PATH LD_PRELOAD".split())


def differs(name: str) -> bool:
    """Whether a variable has another value in containers than outside of them."""
    return name in _OTHER or name.startswith("SLIPWAY_")


def outside(caller: Mapping[str, str], node: Mapping[str, str]) -> dict[str, str]:
    """Return a Slurm command's environment from its caller's in the container and the node's."""
    environment = {name: value for name, value in caller.items() if not differs(name)}
    environment.update((name, value) for name, value in node.items() if differs(name))
    return environment


def step_folder(chdir: str, environment: Mapping[str, str], folder: str) -> str:
    """Return srun's folder for a step; `folder`: the caller's, `chdir`: srun's option."""
    start = chdir or environment.get("SLURM_WORKING_DIR", "")
    return os.path.join(folder, start) if start else folder


def step_environment(
    caller: Mapping[str, str],
    node: Mapping[str, str],
    request: str,
    folder: str,
    *,
    names_step: bool,
) -> dict[str, str]:
    """Return srun's environment, from its caller's in the container and the node's.

    `names_step`: whether the caller names the step; else the name is set by programs.py, and only
    for accounting: tasks have the job's name in SLURM_JOB_NAME.
    """
    set_per_step = CONTAINER_MADE | {"SLIPWAY_SLURM", "SLIPWAY_SUPERVISOR"}
    changed = {x: value for x, value in caller.items() if differs(x) and x not in set_per_step}
    if not names_step and "SLURM_JOB_ID" in caller and "SLURM_JOB_NAME" in caller:
        changed["SLURM_JOB_NAME"] = caller["SLURM_JOB_NAME"]
    return {
        **outside(caller, node),
        REQUEST: plain(request),
        STEP: encode({"folder": folder, "variables": changed, "token": os.urandom(8).hex()}),
    }


def step_token(environment: Mapping[str, str]) -> str:
    """The token of a step; raises ValueError."""
    step = json.loads(decode(environment.get(STEP, "")))
    token = step.get("token") if isinstance(step, dict) else None
    if not isinstance(token, str) or not token.isalnum():
        raise ValueError("the step was not started by this version of Slipway")
    return token


def plain(request: str) -> str:
    """A request's text as the value of REQUEST."""
    return base64.b64encode(request.encode()).decode("ascii")


def request_text(environment: Mapping[str, str]) -> str:
    """The text of a step's request; "" if it has none. Raises ValueError."""
    return decode(environment.get(REQUEST, ""))

"""What travels to the nodes in environment variables.

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
"""A step's folder, those variables that have other values outside of the container, and a token:
what nobody else can know, by which its tasks find each other on a node."""


def encode(value: object) -> str:
    """A value as one word, in which no program looks for anything."""
    return base64.b64encode(json.dumps(value).encode("utf-8", "surrogateescape")).decode("ascii")


def decode(text: str) -> str:
    """The JSON of an encoded value; raises ValueError."""
    return base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")


CONTAINER_MADE = frozenset(
    f"{prefix}_{name}"
    for prefix in ("APPTAINER", "SINGULARITY")
    for name in "APPNAME COMMAND CONTAINER ENVIRONMENT INSTANCE NAME SHARENS_MASTER".split()
)
"""Variables that Apptainer sets in containers; all others of its names are the user's."""
_OTHER = CONTAINER_MADE | set("PATH USER_PATH LD_LIBRARY_PATH LD_PRELOAD".split())


def differs(name: str) -> bool:
    """Whether a variable has another value in containers than outside of them."""
    return name in _OTHER or name.startswith("SLIPWAY_")


def outside(asked: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command of Slurm's, from its caller's in the container and our own."""
    found = {name: value for name, value in asked.items() if not differs(name)}
    found.update((name, value) for name, value in own.items() if differs(name))
    return found


def step_folder(chdir: str, environment: Mapping[str, str], folder: str) -> str:
    """Where srun starts a step that is started in `folder`; `chdir`: its option."""
    place = chdir or environment.get("SLURM_WORKING_DIR", "")
    return os.path.join(folder, place) if place else folder


def step_environment(
    asked: Mapping[str, str],
    own: Mapping[str, str],
    request: str,
    folder: str,
    *,
    names_step: bool,
) -> dict[str, str]:
    """The environment of srun, from that of the caller in the container and our own.

    `names_step`: whether the caller does; else the name is ours (programs.py), and for accounting
    alone: tasks have the job's in SLURM_JOB_NAME.
    """
    own_to_step = CONTAINER_MADE | {"SLIPWAY_SLURM", "SLIPWAY_SUPERVISOR"}
    kept = {x: value for x, value in asked.items() if differs(x) and x not in own_to_step}
    if not names_step and "SLURM_JOB_ID" in asked and "SLURM_JOB_NAME" in asked:
        kept["SLURM_JOB_NAME"] = asked["SLURM_JOB_NAME"]
    return {
        **outside(asked, own),
        REQUEST: plain(request),
        STEP: encode({"folder": folder, "variables": kept, "token": os.urandom(8).hex()}),
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

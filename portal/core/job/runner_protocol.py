"""The messages between the portal and a session's runner: its specification, and its reports.

The reports are validated as they arrive, and used as they are. portal/runner/spec.py reads the
specification.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

from portal.core.apps.access import AppState
from portal.core.apps.catalog import AppName, AppSpec
from portal.core.job.description import JobSettings
from portal.core.session.session import Facts, Session
from portal.core.validation import STRICT

Count = Annotated[int, Field(ge=0, le=2**53)]
"""A number of bytes or the like, as far as all readers of JSON count exactly."""
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


class StartRequest(TypedDict):
    """An app that a runner is to start; the names are those of AppSpec."""

    name: str
    script: str
    ready: str
    timeout: int
    """Seconds."""
    kind: str
    listen: str
    asked: str
    """What the owner has answered to the app's question."""
    origin: str
    """Where browsers find a web app; "" for others."""
    busy: str
    busy_when: str


class ReadyMessage(BaseModel):
    """The gateway of a session's job listens."""

    model_config = STRICT

    job_id: Annotated[str, Field(pattern=r"^[0-9]{1,10}$")]
    node: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$")]
    port: Annotated[int, Field(ge=1, le=65535)]
    csr: Annotated[str, Field(max_length=16_384)]
    """The gateway's certificate signing request, PEM."""
    apps: Annotated[tuple[AppName, ...], Field(max_length=256)] = ()
    """The apps that the image can run, as far as the runner has looked."""


class Heartbeat(BaseModel):
    """What a session's job uses, as its runner reports it every few seconds."""

    model_config = STRICT

    cpu_seconds: Seconds
    """CPU time so far."""
    memory_bytes: Count
    """In use, without the page cache that can be given back."""
    memory_limit: Count | None = None
    oom_kills: Count = 0
    apps: Annotated[dict[AppName, AppState], Field(max_length=64)] = {}
    """The states of the apps that were started."""
    busy: Annotated[tuple[AppName, ...], Field(max_length=64)] = ()
    """The apps that compute, whether or not anybody uses them."""
    gpu_memory_bytes: Count | None = None
    gpu_percent: Percent | None = None
    """Percent of the whole GPU."""
    gpu_kills: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Processes that the node's watchdog killed for exceeding the GPU memory."""

    def meters(self) -> Facts:
        """The session's fields that it sets as they are; a new meter is added here."""
        return {
            "cpu_seconds": self.cpu_seconds,
            "memory_used": self.memory_bytes,
            "oom_kills": self.oom_kills,
            "gpu_memory_used": self.gpu_memory_bytes,
            "gpu_percent": self.gpu_percent,
            "gpu_kills": self.gpu_kills,
        }


class AppReport(BaseModel):
    """What became of one app."""

    model_config = STRICT

    state: Literal["ready", "failed", "stopped"]
    message: Annotated[str, Field(max_length=2000)] = ""
    log: Annotated[str, Field(max_length=65_536)] = ""
    """Its last lines."""
    details: Annotated[str, Field(max_length=4096)] | None = None
    """What the app wants its owner to be shown; only with "ready"."""


def runner_spec(
    session: Session,
    token: str,
    apps: Sequence[AppSpec],
    rules: JobSettings,
    env: Mapping[str, str],
    *,
    callback_ca: str,
    client_ca: str,
) -> str:
    """Write the runner's specification as one line of JSON; `apps` are all that may ever start.

    Secret: it contains the token, and environment variables that often hold passwords.
    """
    return json.dumps(
        {
            "session": session.id,
            "token": token,
            "callback": rules.callback,
            "callback_ca": callback_ca,
            "client_ca": client_ca,
            "ports": list(rules.gateway_ports),
            "heartbeat_seconds": rules.heartbeat_seconds,
            "apps": sorted({app.server for app in apps}),
            "detect": {app.name: app.detect for app in apps},
            "env": dict(env),
            # Only a size that was asked for, or capped, is worth refusing to start for.
            "shared_memory": {"mb": session.shm_mb, "must": _must_have_shm(session)},
            # The runner refuses to start without the slice file that root writes for it.
            "gpu": bool(session.gres),
        }
    )


def _must_have_shm(session: Session) -> bool:
    return session.shared_memory_mb is not None or session.shared_memory_cap_mb is not None

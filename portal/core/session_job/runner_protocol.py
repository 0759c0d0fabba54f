"""Messages between the portal and a session's runner: its specification, and its reports.

Reports are validated on arrival. portal/node/runner/spec.py reads the specification.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

from portal.core.apps.access import AppState
from portal.core.apps.catalog import AppName, AppSpec
from portal.core.launch.mounts import persistent_folders, start_folder, storage_of
from portal.core.launch.site_files import RefusedFile
from portal.core.session.session import Facts, Home, Session
from portal.core.session_job.description import JobSettings
from portal.core.session_job.samples import Reading
from portal.core.validation import STRICT

Count = Annotated[int, Field(ge=0, le=2**53)]
"""A count, for example of bytes; integers up to 2^53 are exact for all JSON parsers."""
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
JobNumber = Annotated[str, Field(pattern=r"^[0-9]{1,10}$")]
NodeName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$")]
LONGEST_NAME = 60
"""Characters of an own image's name in the name of its package folder."""
Percent = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


class StartRequest(TypedDict):
    """A request to a runner to start an app; fields as in AppSpec."""

    name: str
    script: str
    ready: str
    timeout: int
    """Seconds."""
    kind: str
    listen: str
    asked: str
    """The owner's answer to the app's prompt."""
    origin: str
    """The origin of a web app; "" for others."""
    busy: str
    busy_when: str
    session_name: str
    """For window titles."""
    env: dict[str, str]
    """Further variables for this app only; secret."""


class ReadyMessage(BaseModel):
    """Reports that the gateway of a session's job is listening."""

    model_config = STRICT

    job_id: JobNumber
    node: NodeName
    port: Annotated[int, Field(ge=1, le=65535)]
    csr: Annotated[str, Field(max_length=16_384)]
    """The gateway's certificate signing request, PEM."""
    apps: Annotated[tuple[AppName, ...], Field(max_length=256)] = ()
    """The apps that the image can run, as detected by the runner."""


class RenewalMessage(BaseModel):
    """Requests the current authorities and a certificate that they sign."""

    model_config = STRICT

    csr: Annotated[str, Field(max_length=16_384)]
    """The gateway's certificate signing request, PEM."""


class RenewalAnswer(TypedDict):
    """A new certificate, and the current authorities; all PEM."""

    certificate: str
    callback_ca: str
    client_ca: str


class ProgressMessage(BaseModel):
    """Reports the progress of a job before its container starts."""

    model_config = STRICT

    text: Annotated[str, Field(max_length=200)]
    """"" once the container starts."""

    @property
    def shown(self) -> str:
        """The text for pages, without unprintable characters: the job's owner can write any."""
        return "".join(c for c in self.text if c.isprintable()).rstrip(". ")


class Heartbeat(BaseModel):
    """Resource use of a session's job, reported by its runner every few seconds."""

    model_config = STRICT

    cpu_seconds: Seconds
    """CPU time so far."""
    memory_bytes: Count
    """In use, without reclaimable page cache."""
    memory_limit: Count | None = None
    oom_kills: Count = 0
    oom_program: Annotated[str, Field(max_length=64, pattern="^[ -~]*$")] = ""
    """The program of the last process that the OOM killer ended; "" if unknown."""
    oom_age: Seconds = 0
    """Seconds since that kill."""
    apps: Annotated[dict[AppName, AppState], Field(max_length=64)] = {}
    """The states of the apps that were started."""
    busy: Annotated[tuple[AppName, ...], Field(max_length=64)] = ()
    """The apps that are computing, whether used or not."""
    gpu_memory_bytes: Count | None = None
    gpu_percent: Percent | None = None
    """Percent of the whole GPU."""
    gpu_kills: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Processes that the node's watchdog killed for exceeding the GPU memory."""
    home_files: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    """Files in the session's own home, except hidden ones and those below mounts."""
    home_bytes: Count | None = None
    peak_cpu_percent: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = None
    peak_memory_bytes: Count | None = None
    peak_gpu_percent: Percent | None = None
    """The highest of its measurements since the last report, of which a runner takes several if
    the portal has asked for fewer reports; CPU in percent of one core."""

    def meters(self) -> Facts:
        """The values that are copied unchanged into the session's fields."""
        return {
            "cpu_seconds": self.cpu_seconds,
            "memory_used": self.memory_bytes,
            "oom_kills": self.oom_kills,
            "gpu_memory_used": self.gpu_memory_bytes,
            "gpu_percent": self.gpu_percent,
            "gpu_kills": self.gpu_kills,
            "home_files": self.home_files,
            "home_bytes": self.home_bytes,
        }

    @property
    def most_memory(self) -> int:
        """The most memory in use since the last report."""
        return max(self.memory_bytes, self.peak_memory_bytes or 0)

    def reading(self, at: datetime) -> Reading:
        """The values for the session's use over time."""
        return Reading(
            at=at,
            cpu_seconds=self.cpu_seconds,
            memory=self.most_memory,
            gpu_percent=self.gpu_percent,
            gpu_memory=self.gpu_memory_bytes,
        )


class HeartbeatAnswer(TypedDict):
    """The answer to a heartbeat: the session's end, shown in its terminals, and requests."""

    name: str
    kept: str
    """The files that are kept and those that are deleted, in words."""
    seconds_left: int | None
    """None if no end is scheduled."""
    unused: bool
    """Whether it then ends for being unused."""
    ready: bool
    """Whether the portal knows the gateway's address; if not, the runner reports it again."""
    next: float
    """Seconds until the runner is to report again; runners of earlier releases ignore it."""
    authorities: str
    """The fingerprint of the portal's authorities; the runner requests them when it changes."""


class AppReport(BaseModel):
    """Reports a change of one app's state, or that it is slow to start."""

    model_config = STRICT

    state: Literal["starting", "ready", "failed", "stopped"]
    """"starting": it has not answered for some time."""
    message: Annotated[str, Field(max_length=2000)] = ""
    log: Annotated[str, Field(max_length=65_536)] = ""
    """Its last lines."""
    details: Annotated[str, Field(max_length=4096)] | None = None
    """The app's own report to the owner; only with "ready"."""


def is_same_figure(name: str, stored: object, reported: object) -> bool:
    """Whether pages would show a reported figure as they show the stored one."""
    least = _LEAST_CHANGES.get(name)
    if (
        least is None
        or not isinstance(stored, int | float)
        or not isinstance(reported, int | float)
    ):
        return stored == reported
    absolute, part = least
    return abs(reported - stored) <= max(absolute, part * stored)


_LEAST_CHANGES = {
    "cpu_percent": (1.0, 0.0),
    "gpu_percent": (1.0, 0.0),
    "memory_used": (0.0, 0.02),
    "gpu_memory_used": (0.0, 0.02),
}
"""Of figures that always vary: the change, absolute and as a part, up to which it is not stored."""


def fingerprint(callback_ca: str, client_ca: str) -> str:
    """A short hash of the authorities; portal/node/runner/trust/renewal.py computes the same."""
    text = "".join(f"{callback_ca}{client_ca}".split())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def runner_spec(
    session: Session,
    token: str,
    apps: Sequence[AppSpec],
    rules: JobSettings,
    env: Mapping[str, str],
    *,
    callback_ca: str,
    client_ca: str,
    adoption: Mapping[str, object],
    registry: Mapping[str, str] | None = None,
    refused: Sequence[RefusedFile] = (),
) -> str:
    """Write the runner's specification as one line of JSON; `apps` are all that can be started.

    `registry` has user and password for the registry of the session's own image; `refused` lists
    the site's files that may not be used as one. portal/node/batch/execute/session.py removes both
    before the container starts.

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
            "patience_seconds": rules.callback_minutes * 60,
            "apps": sorted({app.server for app in apps}),
            "detect": {app.name: app.detect for app in apps},
            "env": dict(env),
            # The runner insists on the size only if it was requested or capped.
            "shared_memory": {"mb": session.shm_mb, "must": _must_have_shm(session)},
            # The runner refuses to start without the slice file that root writes for it.
            "gpu": bool(session.gres),
            "workdir": _workdir(session, rules),
            "packages": _packages(session, rules),
            # Files in this home are deleted at the end, so their number is shown.
            "count_home": session.home is Home.SESSION,
            # For a portal that has lost the session (core/session_job/adoption.py).
            "adoption": dict(adoption),
            **({"registry": dict(registry)} if registry else {}),
            **({"refused_images": [list(file[:3]) for file in refused]} if refused else {}),
        }
    )


def _workdir(session: Session, rules: JobSettings) -> str:
    return start_folder(session.mounts, _storage(session, rules))


def _packages(session: Session, rules: JobSettings) -> dict[str, object]:
    """The name of the package folder, and the folders that may contain it."""
    image = session.image or f"{session.environment}-{session.version}"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", image).strip("-.")[-LONGEST_NAME:]
    if session.image:
        # The hash distinguishes images that differ only in characters replaced or cut above.
        name = f"own-{name}-{hashlib.sha256(image.encode()).hexdigest()[:8]}"
    return {"name": name, "folders": persistent_folders(session.mounts, _storage(session, rules))}


def _storage(session: Session, rules: JobSettings) -> str | None:
    """The path of the storage folders if the home is the owner's own."""
    own_home = session.home is Home.PERSISTENT
    return storage_of(session.owner, rules.storage) if own_home else None


def _must_have_shm(session: Session) -> bool:
    return session.shared_memory_mb is not None or session.shared_memory_cap_mb is not None

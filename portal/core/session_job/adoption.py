"""Adoption of sessions that the portal has lost, from Slurm's report of the job and its claims.

Owner, nodes and resources of the job are taken from Slurm alone. The claims are fields that the
portal once wrote into the session's specification. The owner can change them, for own sessions
only, so they are used only for display and for requesting the same again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.launch.environment import NAME
from portal.core.launch.hub import MAX_PREFIX
from portal.core.launch.mounts import Mounts
from portal.core.launch.names import readable_name
from portal.core.launch.own_image import OwnImage
from portal.core.launch.request import SessionName
from portal.core.session.session import Home, Session
from portal.core.session_job.runner_protocol import JobNumber, NodeName
from portal.core.validation import STRICT, Matching, Word
from portal.node.common.fgpu import of_gres
from portal.node.common.json_text import NotJson, decode_object

PROOF = "tmp/.slipway-runner"
"""The file below a session's folder by which its runner proves that it runs as the owner;
PROOF_INSIDE is its path in the container."""
PROOF_INSIDE = "/opt/slipway-proof/.slipway-runner"
SPEC = "spec.json"
"""The specification below a session's folder; it exists until the job starts."""
MAX_PROOF, MAX_SPEC = 200, 2 * 1024 * 1024
"""Bytes read from these files."""
MAX_LIVE_SESSIONS = 200
"""Live sessions of one user, beyond which none is adopted: users choose their jobs' names."""
_ID = re.compile(r"[0-9a-f]{32}")
_RUNS = frozenset({JobState.RUNNING, JobState.SUSPENDED})
_GRES = re.compile(r"(?:gpu|shard)(?::[A-Za-z0-9][\w.-]{0,63})?:[0-9]{1,6}", re.ASCII)
UNKNOWN = "unknown"
"""Environment and version of a session without these claims."""


def is_session_id(text: str) -> bool:
    """Whether a job with this name may be a session's."""
    return _ID.fullmatch(text) is not None


class AdoptMessage(BaseModel):
    """Requests the adoption of the runner's session."""

    model_config = STRICT

    job_id: JobNumber
    node: NodeName
    about: dict[str, Any] = {}
    """Claims about the session, for `read_claims`: another release may have written them."""


class Claims(BaseModel):
    """The claims of a session about itself; fields as in Session."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    name: SessionName | None = None
    named: bool = False
    environment: Word = UNKNOWN
    version: Word = UNKNOWN
    image: OwnImage | None = None
    fgpu: Annotated[float, Field(gt=0, le=1024, allow_inf_nan=False)] | None = None
    gpu_kind: Annotated[str, Matching(r"[A-Za-z0-9._-]{0,64}", "")] = ""
    gres: str = Field("", max_length=100)
    gpu_memory_mb: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    gpu_sm_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    shared_memory_mb: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    shared_memory_cap_mb: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    env_names: Annotated[tuple[Annotated[str, Matching(NAME, "")], ...], Field(max_length=100)] = ()
    mounts: Mounts = ()
    home: Home = Home.SESSION
    hub_prefix: str = Field("", max_length=MAX_PREFIX)


def claims_of(session: Session) -> dict[str, Any]:
    """The claims of a session, for its specification; without secrets."""
    fields = session.model_dump(mode="json", include=set(Claims.model_fields))
    return {name: value for name, value in fields.items() if value not in (None, "", [], False)}


def read_claims(data: Mapping[str, Any]) -> Claims:
    """Parse claims; invalid fields, as of another release, are left out."""
    try:
        return Claims.model_validate(dict(data))
    except ValidationError as error:
        invalid = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
        valid = {name: value for name, value in data.items() if name not in invalid}
        return Claims.model_validate(valid)


@dataclass(frozen=True)
class WaitingSpec:
    """The specification of a session whose job is pending."""

    token: str
    claims: Claims
    env: Mapping[str, str]


def read_spec(data: bytes, session: str, callback: str) -> WaitingSpec | None:
    """Parse a specification; None unless it is this session's, from a portal at this address."""
    try:
        spec = decode_object(data)
    except NotJson:
        return None
    token, env = spec.get("token"), spec.get("env")
    if (spec.get("session"), spec.get("callback")) != (session, callback):
        return None
    if not isinstance(token, str) or not re.fullmatch(r"[!-~]{8,200}", token):
        return None
    adoption = spec.get("adoption")
    claimed = adoption.get("about") if isinstance(adoption, dict) else None
    claims = read_claims(claimed if isinstance(claimed, dict) else {})
    names = set(claims.env_names)
    values = env if isinstance(env, dict) else {}
    claimed_env = {n: v for n, v in values.items() if n in names and isinstance(v, str)}
    return WaitingSpec(token, claims, claimed_env)


def earliest_job(reports: Iterable[JobReport]) -> JobReport | None:
    """The first submitted of these jobs of one name, of any user, that are not over.

    Sessions' ids are random, so a job that imitates the name of another was submitted after it.
    """
    live = [report for report in reports if not report.state.over]
    return min(live, key=lambda report: int(report.job_id), default=None)


def runs_on(report: JobReport, node: str) -> bool:
    """Whether the job holds this node now."""
    return report.state in _RUNS and node in report.nodes


def adopt(
    session: str, report: JobReport, claims: Claims, token_hash: str, now: datetime
) -> Session:
    """The session of a job, in the state after submission; Slurm's reports then change it."""
    gpu = _gpu(report, claims)
    return Session(
        id=session,
        name=claims.name or readable_name(int(session[:8], 16)),
        named=claims.named and claims.name is not None,
        owner=report.user,
        environment=claims.environment,
        version=claims.version,
        image=claims.image or "",
        cpus=max(report.cpus, 1),
        memory_mb=max(report.memory_mb, 1),
        partition=report.partition or None,
        # Slurm's values, which the request may have left out: limits depend on them.
        account=report.account,
        qos=report.qos,
        time_limit=report.time_limit,
        **gpu,
        shared_memory_mb=claims.shared_memory_mb,
        shared_memory_cap_mb=claims.shared_memory_cap_mb,
        env_names=claims.env_names,
        mounts=claims.mounts,
        home=claims.home,
        hub_prefix=claims.hub_prefix,
        begin=_begin(report),
        created=min(report.submitted or now, now),
        submitted=now,
        token_hash=token_hash,
        job_id=report.job_id,
        restarts=report.restarts,
    )


def _begin(report: JobReport) -> datetime | None:
    """The end of the maintenance that it waits for: only maintenance gives a session a begin time.

    The session then follows changes of the maintenance like any other, so that it does not wait for
    a maintenance that was lost as well. The begin time of a requeued job is Slurm's.
    """
    deferred = report.state is JobState.PENDING and report.reason == "BeginTime"
    return report.start if deferred and not report.restarts else None


def _gpu(report: JobReport, claims: Claims) -> dict[str, Any]:
    """The GPU that Slurm reports for the job; in the administrator's unit if the claims match."""
    if not report.shards and not report.gpus:
        return {}
    if _GRES.fullmatch(claims.gres) and of_gres(claims.gres) in (
        (report.shards, 0),
        (0, report.gpus),
    ):
        names = ("fgpu", "gpu_kind", "gres", "gpu_memory_mb", "gpu_sm_percent")
        return {name: getattr(claims, name) for name in names}
    shards = f"shard:{report.shards}"
    return {"gres": shards if report.shards else f"gpu:{report.gpus}"}

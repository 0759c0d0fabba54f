"""Converts sessions and requests to the REST API's launch request, without losing a field.

Presets are stored in this form, sessions are converted to it, and the wizard displays it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from portal.core.launch.request import LaunchRequest
from portal.core.session.session import Session
from portal.core.slurm_options import SlurmOptions
from portal.core.units import (
    exact_size,
    format_cores,
    format_fgpu,
    format_size,
)


def to_request_body(request: LaunchRequest) -> dict[str, Any]:
    """The request body that yields this request."""
    return request.model_dump(mode="json", exclude_defaults=True)


def session_to_request_body(session: Session, env: Mapping[str, str]) -> dict[str, Any]:
    """The request body that launches an identical session; `env` with its values.

    A generated name is left out. Not validated: the rules may have changed since.
    """
    resources: dict[str, Any] = {"cpus": session.cpus, "memory": format_size(session.memory_mb)}
    if session.shared_memory_mb is not None:
        resources["shared_memory"] = format_size(session.shared_memory_mb)
    if session.fgpu is not None:
        resources["fgpu"] = session.fgpu
        resources |= {"gpu_kind": session.gpu_kind} if session.gpu_kind else {}
    body: dict[str, Any] = {
        **_image(session),
        "name": session.name if session.named else None,
        "resources": resources,
        "resource_group": session.partition,
        **{name: value for name, value in asdict(session.slurm).items() if value},
        "time_limit": session.time_limit,
        "mounts": [mount.model_dump() for mount in session.mounts],
        "env": dict(env),
    }
    return {name: value for name, value in body.items() if value not in (None, [], {})}


def _image(session: Session) -> dict[str, str]:
    if session.image:
        return {"image": session.image}
    return {"environment": session.environment, "version": session.version}


def described(options: SlurmOptions) -> list[str]:
    """Describe each of the chosen Slurm options."""
    chosen = {
        "account": options.account,
        "QOS": options.qos,
        "reservation": options.reservation,
        "features": options.constraint,
    }
    words = [f"{name} {value}" for name, value in chosen.items() if value]
    return [*words, *(["whole node"] if options.exclusive else [])]


def describe_launch(session: Session) -> str:
    """A launch in one line of the audit log: names of variables, never their values."""
    parts = [
        session.image or f"{session.environment} {session.version}",
        format_cores(session.cpus),
        exact_size(session.memory_mb),
        f"shared memory {exact_size(session.shm_mb)}",
    ]
    if session.fgpu is not None:
        parts.append(f"{format_fgpu(session.fgpu)} {session.gpu_kind}".rstrip())
    if session.partition:
        parts.append(f"group {session.partition}")
    parts += described(session.slurm)
    if session.time_limit:
        parts.append(f"{session.time_limit} minutes")
    if session.mounts:
        parts.append("folders " + " ".join(mount.folder for mount in session.mounts))
    if session.env_names:
        parts.append("variables " + " ".join(session.env_names))
    return f"{session.name}: {', '.join(parts)}"

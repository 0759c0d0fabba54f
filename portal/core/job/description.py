"""What is handed to Slurm for a session: the job's description, and the runner's instructions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from portal.core.apps.catalog import AppSpec, Image
from portal.core.cluster.jobs import JobDescription
from portal.core.launch.mounts import mount_points
from portal.core.session.session import Session


@dataclass(frozen=True)
class Rules:
    """What the site's settings say about all sessions."""

    template: str
    """Text of the batch script's template."""
    toolkit: str
    directory: str
    callback: str
    gateway_ports: tuple[int, int]
    heartbeat_seconds: int
    storage: str
    """Where users' storage folders lie (core/launch/mounts.py)."""
    dotfiles: tuple[str, ...] = ()
    """Files of the user's home that each session gets copies of."""


def build_job(session: Session, image: Image, rules: Rules) -> JobDescription:
    """Describe the job that carries the session."""
    return JobDescription(
        session=session.id,
        user=session.owner,
        cpus=session.cpus,
        memory_mb=session.memory_mb,
        partition=session.partition,
        time_limit=session.time_limit,
        gres=session.gres,
        image=image.path,
        toolkit=rules.toolkit,
        directory=rules.directory,
        mounts=mount_points(session.owner, session.mounts, rules.storage),
        dotfiles=rules.dotfiles,
    )


def runner_spec(
    session: Session,
    token: str,
    apps: Sequence[AppSpec],
    rules: Rules,
    env: Mapping[str, str],
    *,
    callback_ca: str,
    client_ca: str,
) -> str:
    """Write the runner's instructions as one line of JSON; `apps` are all that may ever start.

    Secret: the token is in it, and environment variables often hold passwords.
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
            # Only what was asked for by name, or capped, is worth not starting for.
            "shared_memory": {"mb": session.shm_mb, "must": _must_have_shm(session)},
            # The runner refuses to start without the slice that root made of this.
            "gpu": bool(session.gres),
        }
    )


def _must_have_shm(session: Session) -> bool:
    return session.shared_memory_mb is not None or session.shared_memory_cap_mb is not None

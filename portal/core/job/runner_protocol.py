"""TODO."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from portal.core.apps.catalog import AppSpec
from portal.core.job.description import JobSettings
from portal.core.session.session import Session


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

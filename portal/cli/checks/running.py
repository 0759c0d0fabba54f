"""Whether the portal's worker runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from portal.cli.findings import Finding, warn
from portal.core.monitoring import worker_part
from portal.errors import DatabaseUnavailable
from portal.store.heartbeats import HeartbeatStore


def check_worker(heartbeats: HeartbeatStore, now: datetime) -> Iterator[Finding]:
    """Warn if the worker does not run, since sites are also checked before their start."""
    try:
        part = worker_part(heartbeats.beats(), now)
    except DatabaseUnavailable as error:
        yield Finding(False, error.text)
        return
    if part.ok:
        yield Finding(True, f"the worker: {part.text}")
        return
    yield warn(
        f"the worker {part.text}: nobody looks at Slurm until it is started (systemctl start "
        "slipway-worker)"
    )

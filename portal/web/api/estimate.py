"""When a session would start, over the REST API."""

from __future__ import annotations

from typing import Any

from flask.typing import ResponseReturnValue

from portal.core.launch import format_size
from portal.core.offer import use_of
from portal.core.usage import GroupUse
from portal.web.api import guarded
from portal.web.body import read_json
from portal.web.context import person, services

blueprint = guarded("estimate")


@blueprint.post("/sessions/estimate")
def estimate() -> ResponseReturnValue:
    """Slurm's estimate for a launch that is not made, and what is free for it right now."""
    wanted = services().sessions.parse(read_json())
    found = services().sessions.estimate(person(), wanted)
    use = use_of(services().sessions.status, person().name, wanted.resource_group)
    return {
        "estimated_start": found.start.isoformat() if found and found.start else None,
        "reason": found.reason if found else "Slurm gives no estimate right now.",
        "free": _free(use),
    }


def _free(use: GroupUse | None) -> dict[str, Any]:
    cpus, memory = (use.cpus.available, use.memory.available) if use else (None, None)
    return {"cpus": cpus, "memory": None if memory is None else format_size(memory)}

"""When a session would start, over the REST API."""

from __future__ import annotations

from typing import Any

from flask.typing import ResponseReturnValue

from portal.core.cluster.usage import PartitionUsage
from portal.core.launch.request import LaunchRequest
from portal.core.session.session import Session
from portal.core.units import format_size
from portal.web.api import guarded
from portal.web.api.models import gpu_of
from portal.web.body import read_json
from portal.web.context import person, services

blueprint = guarded("estimate")


@blueprint.post("/sessions/estimate")
def estimate() -> ResponseReturnValue:
    """Slurm's estimate for a launch that is not made, and what is free for it right now."""
    wanted = services().launcher.parse(read_json())
    found = services().estimates.estimate(person(), wanted)
    use = services().cluster.usage_for(person().name, wanted.resource_group)
    draft = services().launcher.draft(person(), wanted).session
    return {
        "estimated_start": found.start.isoformat() if found and found.start else None,
        "reason": found.reason if found else "Slurm gives no estimate right now.",
        "free": _free(use),
        "gpu": _granted(draft, wanted),
    }


def _granted(draft: Session, wanted: LaunchRequest) -> dict[str, Any] | None:
    """The GPU that it would get; None where it asks for none."""
    found = gpu_of(draft, services().gpus)
    asked = wanted.resources.fgpu
    return found and {"asked": asked, "fgpu": draft.fgpu, "rounded": draft.fgpu != asked, **found}


def _free(use: PartitionUsage | None) -> dict[str, Any]:
    cpus, memory = (use.cpus.available, use.memory.available) if use else (None, None)
    return {
        "cpus": cpus,
        "memory": None if memory is None else format_size(memory),
        "fgpu": use.fgpu.available if use and use.fgpu else None,
    }

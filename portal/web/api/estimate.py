"""When a session would start, over the REST API."""

from __future__ import annotations

from portal.core.launch.request import LaunchRequest
from portal.services.cluster import usage_for_user
from portal.web.api import guarded
from portal.web.api.models.estimates import EstimateOut, GpuGrantOut
from portal.web.api.operation import operation
from portal.web.body import read_json
from portal.web.context import person, services

blueprint = guarded("estimate")


@blueprint.post("/sessions/estimate")
@operation(
    "When such a session would start, by Slurm's own estimate; nothing is launched",
    EstimateOut,
    body=LaunchRequest,
)
def estimate() -> EstimateOut:
    """Slurm's estimate for a launch that is not made, and what is free for it right now."""
    wanted = services().sessions.parse(read_json())
    found = services().sessions.estimate(person(), wanted)
    usage = usage_for_user(services().sessions.status, person().name, wanted.resource_group)
    draft = services().sessions.draft(person(), wanted)
    gpu = GpuGrantOut.for_draft(draft, wanted.resources.fgpu, services().sessions.gpus)
    return EstimateOut.of(found, usage, gpu)

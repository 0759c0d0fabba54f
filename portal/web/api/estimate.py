"""When a session would start, over the REST API."""

from __future__ import annotations

from portal.core.launch.request import LaunchRequest
from portal.web.api import guarded
from portal.web.api.models.estimates import EstimateOut, GpuGrantOut
from portal.web.api.operation import operation
from portal.web.context import person, services
from portal.web.http.body import read_json

blueprint = guarded("estimate")


@blueprint.post("/sessions/estimate")
@operation(
    "When such a session would start, by Slurm's own estimate; nothing is launched",
    EstimateOut,
    body=LaunchRequest,
)
def estimate() -> EstimateOut:
    """Slurm's estimate for a launch that is not made, and what is free for it right now."""
    wanted = services().launcher.parse(read_json())
    found = services().estimates.estimate(person(), wanted)
    usage = services().cluster.usage_for(person().name, wanted.resource_group)
    draft = services().launcher.draft(person(), wanted).session
    gpu = GpuGrantOut.for_draft(draft, wanted.resources.fgpu, services().gpus)
    return EstimateOut.of(found, usage, gpu)

"""Start estimates over the REST API."""

from __future__ import annotations

from portal.core.launch.request import LaunchRequest
from portal.core.launch_estimate import fits_now
from portal.web.api import guarded
from portal.web.api.models.estimates import EstimateOut, GpuGrantOut
from portal.web.api.operation import operation
from portal.web.context import person, services
from portal.web.http.body import read_json

blueprint = guarded("estimate", for_services=True)


@blueprint.post("/sessions/estimate")
@operation(
    "Slurm's estimate of when such a session would start; nothing is launched",
    EstimateOut,
    body=LaunchRequest,
)
def estimate_start() -> EstimateOut:
    """Slurm's estimate for a launch request, and the free resources; nothing is launched."""
    plan = services().launch_checks.prepare(person(), read_json())
    request, cluster = plan.request, plan.view.cluster
    estimate = services().estimates.estimate(plan)
    usage = cluster.usage_for(person().name, request.resource_group, request.slurm)
    draft = services().launcher.draft(plan).session
    gpu = GpuGrantOut.for_draft(draft, request.resources.fgpu, services().gpus)
    return EstimateOut.of(estimate, usage, gpu, fits_now(usage, draft, request.count))

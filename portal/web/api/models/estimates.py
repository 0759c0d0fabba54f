"""Response models for start estimates."""

from __future__ import annotations

from portal.core.cluster.gpu_offers import Gpus
from portal.core.cluster.job_reports import Estimate
from portal.core.cluster.meters import PartitionUsage
from portal.core.session.session import Session
from portal.web.api.models.base import ResponseModel, Time, optional_size
from portal.web.api.models.session_resources import GpuOut

NO_ESTIMATE = "Slurm gives no estimate right now."


class FreeOut(ResponseModel):
    """Resources that the caller could get right now."""

    cpus: int | None
    memory: str | None
    fgpu: float | None

    @classmethod
    def of(cls, usage: PartitionUsage | None) -> FreeOut:
        """Build it; all fields are null while the usage is unknown."""
        if usage is None:
            return cls(cpus=None, memory=None, fgpu=None)
        return cls(
            cpus=usage.cpus.available,
            memory=optional_size(usage.memory.available),
            fgpu=usage.fgpu.available if usage.fgpu else None,
        )


class GpuGrantOut(GpuOut):
    """The share of a GPU that a launch would be granted."""

    asked: float
    fgpu: float
    rounded: bool
    """Whether more was granted than requested."""

    @classmethod
    def for_draft(cls, draft: Session, requested: float | None, gpus: Gpus) -> GpuGrantOut | None:
        """Build it from a draft of the session; None if no GPU was requested."""
        share = GpuOut.of(draft, gpus)
        if share is None or draft.fgpu is None or requested is None:
            return None
        rounded = draft.fgpu != requested
        return cls(asked=requested, fgpu=draft.fgpu, rounded=rounded, **dict(share))


class EstimateOut(ResponseModel):
    """An estimate of when a session would start."""

    estimated_start: Time | None
    reason: str
    """Why there is no estimate."""
    fits_now: int | None
    """The number of requested sessions that fit the caller's free resources now."""
    free: FreeOut
    gpu: GpuGrantOut | None

    @classmethod
    def of(
        cls,
        estimate: Estimate | None,
        usage: PartitionUsage | None,
        gpu: GpuGrantOut | None,
        fits: int | None,
    ) -> EstimateOut:
        """Build it; `estimate` is None if Slurm did not answer."""
        return cls(
            estimated_start=estimate.start if estimate else None,
            reason=estimate.reason if estimate else NO_ESTIMATE,
            fits_now=fits,
            free=FreeOut.of(usage),
            gpu=gpu,
        )

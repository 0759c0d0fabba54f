"""Response models of a session's history: use over time, and its timeline."""

from __future__ import annotations

from portal.core.admin.timeline import Moment
from portal.core.session_job.samples import Point
from portal.web.api.models.base import ResponseModel, Time


class UsePointOut(ResponseModel):
    """Use during one span of time."""

    at: Time
    """Start of the span."""
    seconds: int
    """Length of the span."""
    cpu_percent: float | None
    """Percent of one core, on average since the previous point."""
    memory: int
    """Bytes, at the peak."""
    gpu_percent: float | None
    """Percent of the whole GPU, on average."""
    gpu_memory: int | None
    """Bytes, at the peak."""

    @classmethod
    def of(cls, point: Point) -> UsePointOut:
        """Build it."""
        sample, cpu, gpu = point.sample, point.cpu_percent, point.sample.gpu_percent
        return cls(
            at=sample.at,
            seconds=sample.seconds,
            cpu_percent=None if cpu is None else round(cpu, 1),
            memory=sample.memory,
            gpu_percent=None if gpu is None else round(gpu, 1),
            gpu_memory=sample.gpu_memory,
        )


class UseOverTimeOut(ResponseModel):
    """A session's use over time; the longer it runs, the longer the spans."""

    points: list[UsePointOut]
    """Oldest first; empty some time after the session's end."""


class MomentOut(ResponseModel):
    """One moment of a session's timeline."""

    at: Time
    title: str
    detail: str

    @classmethod
    def of(cls, moment: Moment) -> MomentOut:
        """Build it."""
        return cls(at=moment.at, title=moment.title, detail=moment.detail)


class TimelineOut(ResponseModel):
    """The timeline of a session."""

    moments: list[MomentOut]
    """Oldest first."""

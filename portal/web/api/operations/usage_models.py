"""Response models of who uses what."""

from __future__ import annotations

from datetime import date, timedelta

from portal.core.admin.usage import By, Report, Span, Unit, UsageSum
from portal.core.units import format_size
from portal.services.admin.usage import InUse
from portal.web.api.models.base import ResponseModel, Time


class UsedOut(ResponseModel):
    """What was used in some time."""

    sessions: int
    """Sessions that started in this time."""
    people: int
    """Those who started them."""
    core_hours: float
    gpu_hours: float
    """fGPU, the site's unit of GPUs, times hours."""

    @classmethod
    def of(cls, used: UsageSum) -> UsedOut:
        """Build it."""
        return cls(
            sessions=used.sessions,
            people=used.people,
            core_hours=used.core_hours,
            gpu_hours=used.gpu_hours,
        )


class UsedInSpanOut(UsedOut):
    """What was used in a day, a week or a month; days are UTC."""

    first: date
    last: date

    @classmethod
    def in_span(cls, span: Span, used: UsageSum) -> UsedInSpanOut:
        """Build it."""
        last = span.end.date() - timedelta(days=1)
        return cls(first=span.begin.date(), last=last, **dict(UsedOut.of(used)))


class UsedByOut(UsedOut):
    """What one person, account, environment or app used in the whole time."""

    name: str

    @classmethod
    def by_name(cls, name: str, used: UsageSum) -> UsedByOut:
        """Build it."""
        return cls(name=name, **dict(UsedOut.of(used)))


class UsageReportOut(ResponseModel):
    """Who used what over time; only sessions that the portal knows."""

    unit: Unit
    by: By
    of: str
    spans: list[UsedInSpanOut]
    """Oldest first; of `of` alone, if it is given."""
    groups: list[UsedByOut]
    """The most core-hours first."""
    total: UsedOut

    @classmethod
    def of_report(cls, report: Report) -> UsageReportOut:
        """Build it."""
        return cls(
            unit=report.query.unit,
            by=report.query.by,
            of=report.query.of,
            spans=[UsedInSpanOut.in_span(span, used) for span, used in report.spans],
            groups=[UsedByOut.by_name(name, used) for name, used in report.groups],
            total=UsedOut.of(report.total),
        )


class InUseOut(ResponseModel):
    """What one person uses now."""

    user: str
    running: int
    """Sessions that hold resources."""
    waiting: int
    cpus: int
    memory: str
    fgpu: float
    last_used: Time | None
    jobs: int
    """All running jobs in Slurm, also those that are no sessions."""

    @classmethod
    def of(cls, found: InUse) -> InUseOut:
        """Build it."""
        return cls(
            user=found.user,
            running=found.running,
            waiting=found.waiting,
            cpus=found.cpus,
            memory=format_size(found.memory_mb),
            fgpu=found.fgpu,
            last_used=found.last_used,
            jobs=found.jobs,
        )


class UsageNowOut(ResponseModel):
    """Who has sessions now, the most cores first."""

    people: list[InUseOut]

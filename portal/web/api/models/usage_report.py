"""Response models of the usage by users, accounts, environments and apps."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from portal.core.admin.usage_report import By, Report, Span, Unit, UsageQuery, UsageSum
from portal.core.units import format_size
from portal.services.admin.usage_report import InUse
from portal.web.api.models.base import ResponseModel, Time


class UsedOut(ResponseModel):
    """Usage in a period."""

    sessions: int
    """Sessions that started in the period."""
    people: int
    """Users who started them."""
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
    """Usage in a day, a week or a month; days are UTC."""

    first: date
    last: date

    @classmethod
    def in_span(cls, span: Span, used: UsageSum) -> UsedInSpanOut:
        """Build it."""
        last = span.end.date() - timedelta(days=1)
        return cls(first=span.begin.date(), last=last, **dict(UsedOut.of(used)))


class UsedByOut(UsedOut):
    """Usage of one person, account, environment or app in the whole period."""

    name: str

    @classmethod
    def by_name(cls, name: str, used: UsageSum) -> UsedByOut:
        """Build it."""
        return cls(name=name, **dict(UsedOut.of(used)))


class UsageReportOut(ResponseModel):
    """Usage over time, of the sessions that the portal knows."""

    unit: Unit
    by: By
    of: str
    spans: list[UsedInSpanOut]
    """Oldest first; of `of` alone, if set."""
    groups: list[UsedByOut]
    """The most core-hours first."""
    total: UsedOut

    @classmethod
    def of_report(cls, report: Report, most: int) -> UsageReportOut:
        """Build it, with the largest groups."""
        return cls(
            unit=report.query.unit,
            by=report.query.by,
            of=report.query.of,
            spans=[UsedInSpanOut.in_span(span, used) for span, used in report.spans],
            groups=[UsedByOut.by_name(name, used) for name, used in report.groups[:most]],
            total=UsedOut.of(report.total),
        )


Most = Annotated[int, Field(ge=1, le=500)]


class LimitedUsageQuery(UsageQuery):
    """The query of a report, and the number of groups in the answer."""

    limit: Most = 500
    """The most groups; the totals count all of them."""


class UsageNowQuery(BaseModel):
    """How many users are in the answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: Most = 500


class InUseOut(ResponseModel):
    """The present usage of one person."""

    user: str
    running: int
    """Sessions that hold resources."""
    waiting: int
    cpus: int
    memory: str
    fgpu: float
    last_used: Time | None
    jobs: int
    """All running jobs in Slurm, including those that are not sessions."""

    @classmethod
    def of(cls, usage: InUse) -> InUseOut:
        """Build it."""
        return cls(
            user=usage.user,
            running=usage.running,
            waiting=usage.waiting,
            cpus=usage.cpus,
            memory=format_size(usage.memory_mb),
            fgpu=usage.fgpu,
            last_used=usage.last_used,
            jobs=usage.jobs,
        )


class UsageNowOut(ResponseModel):
    """The users who have sessions now, the most cores first."""

    people: list[InUseOut]
    number: int
    """All users who have sessions now."""

"""The administrators' page of the usage, now and over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlencode

from flask import Response, make_response, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.admin.usage_report import Report, Span, UsageQuery, UsageSum, usage_csv
from portal.core.validation import check
from portal.errors import InvalidRequest
from portal.web.context import person, services
from portal.web.pages.admin.views import blueprint

UNITS = {"day": "day", "week": "week", "month": "month"}
BY = {"person": "person", "account": "account", "environment": "environment", "app": "app"}
_NAMES = ("unit", "by", "first", "last", "of")
SHOWN = 50
"""Groups on the page; the CSV file has all of them."""


@dataclass(frozen=True)
class Bar:
    """One row of a table with a bar."""

    name: str
    used: UsageSum
    percent: float
    """Length of the bar, relative to the longest one."""
    link: str = ""


@blueprint.get("/usage")
def usage() -> ResponseReturnValue:
    """The page."""
    filters = {name: request.args.get(name, "").strip() for name in _NAMES}
    report, problem, errors = None, "", {}
    try:
        report = services().usage.report(person(), _query(filters))
    except InvalidRequest as error:
        errors = {invalid.field: invalid.message for invalid in error.errors}
        problem = error.text
    now = services().usage.now(person())
    html = render_template(
        "admin_usage.html",
        part="usage",
        person=person(),
        now=now[:SHOWN],
        more_now=len(now) - SHOWN,
        filters=filters | _effective(report),
        shown=_days(report),
        report=report,
        spans=_spans(report) if report else [],
        groups=_groups(report, filters) if report else [],
        problem=problem,
        errors=errors,
        units=UNITS,
        by=BY,
        most=SHOWN,
        export=urlencode({name: value for name, value in filters.items() if value}),
        gpus=bool(services().gpus.kinds) or bool(report and report.total.gpu_hours),
    )
    return make_response(html, 422 if problem else 200)


@blueprint.get("/usage.csv")
def usage_file() -> ResponseReturnValue:
    """The report as a CSV file."""
    filters = {name: request.args.get(name, "").strip() for name in _NAMES}
    report = services().usage.export(person(), _query(filters))
    response = Response("".join(usage_csv(report)), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = 'attachment; filename="usage.csv"'
    return response


def _query(filters: dict[str, str]) -> UsageQuery:
    return check(UsageQuery, {name: value for name, value in filters.items() if value})


def _effective(report: Report | None) -> dict[str, str]:
    """The unit and grouping of the report, for the form."""
    return {"unit": report.query.unit, "by": report.query.by} if report else {}


def _days(report: Report | None) -> tuple[date, date] | None:
    """The first and the last day of a report, up to today."""
    if report is None:
        return None
    end = report.spans[-1][0].end - timedelta(days=1)
    return report.spans[0][0].begin.date(), min(end, services().clock()).date()


def _spans(report: Report) -> list[Bar]:
    longest = max((used.core_hours for _, used in report.spans), default=0)
    return [
        Bar(_span_text(report.query.unit, span), used, _percent(used, longest))
        for span, used in reversed(report.spans)
    ]


def _span_text(unit: str, span: Span) -> str:
    if unit == "month":
        return f"{span.begin:%Y-%m}"
    if unit == "week":
        return f"{span.begin:%Y-%m-%d} to {span.end - timedelta(days=1):%m-%d}"
    return f"{span.begin:%Y-%m-%d}"


def _groups(report: Report, filters: dict[str, str]) -> list[Bar]:
    longest = max((used.core_hours for _, used in report.groups), default=0)
    chosen = {name: value for name, value in filters.items() if value}
    return [
        Bar(
            name,
            used,
            _percent(used, longest),
            "" if report.query.by == "app" else urlencode(chosen | {"of": name}),
        )
        for name, used in report.groups[:SHOWN]
    ]


def _percent(used: UsageSum, longest: float) -> float:
    return round(100 * used.core_hours / longest, 2) if longest else 0.0

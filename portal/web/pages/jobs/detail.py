"""The page of one job: its request, resources, use, output, tasks and end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from flask import flash, redirect, render_template
from flask.typing import ResponseReturnValue

from portal.core.cluster.extensions import Extensions
from portal.core.jobs.dependencies import Dependency, dependencies
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.job_usage import JobUsage
from portal.core.jobs.output import Reading, Stream, path_of, streams_of, title_of, why_no_path
from portal.core.jobs.query import JobRow
from portal.core.jobs.tasks import shorten
from portal.web.context import person, polled, services
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.pages.jobs.rows import JobView, job_views
from portal.web.pages.jobs.use_view import UseView
from portal.web.pages.listing import Parts, render_parts
from portal.web.pages.sessions.actions import requested_minutes

PARTS = ("_job_head.html", "_job_facts.html")
"""The parts that the page polls; each is one element of the page."""


@dataclass(frozen=True)
class OutputView:
    """One output file of a job."""

    stream: Stream
    title: str
    path: str
    problem: str
    """Why it cannot be read, in words."""


@dataclass(frozen=True)
class JobPage:
    """View model of the page of a job."""

    row: JobView

    @property
    def job(self) -> Job:
        """The job."""
        return self.row.job

    @property
    def url(self) -> str:
        """Its address."""
        return job_url(self.job.shown_id)

    @property
    def state_text(self) -> str:
        """Its state in words, for screen readers."""
        texts = {JobTab.PENDING: "is pending", JobTab.RUNNING: "is running"}
        return texts.get(self.job.tab, "has ended")

    @property
    def outputs(self) -> list[OutputView]:
        """Its output files; [] until Slurm has reported them."""
        return [
            OutputView(
                stream,
                title_of(self.job, stream),
                path := path_of(self.job, stream),
                why_no_path(path),
            )
            for stream in streams_of(self.job)
        ]

    @cached_property
    def reading(self) -> Reading | None:
        """When an administrator last read its output."""
        return services().job_outputs.reading(self.job)

    @cached_property
    def tasks(self) -> list[tuple[JobTab, int]]:
        """Of an array: the number of its tasks on each tab of the list."""
        if not self.job.array_id:
            return []
        counts = services().jobs.tasks(self.job)
        return [(tab, counts[tab]) for tab in JobTab if counts.get(tab)]

    @property
    def waiting_tasks(self) -> str:
        """The tasks that have not started, in Slurm's notation."""
        return shorten(self.job.tasks)

    @property
    def waits_for(self) -> tuple[list[Dependency], bool]:
        """Its dependencies, and whether one of them is sufficient."""
        return dependencies(self.job.texts.dependency)

    @cached_property
    def extensions(self) -> Extensions:
        """The possible extensions of its time limit."""
        return services().jobs.extensions(self.job)

    @cached_property
    def use(self) -> UseView | None:
        """Its usage as last reported by Slurm; None before the first query."""
        return _use_view(services().job_use.stored(self.job))


def job_url(shown_id: str) -> str:
    """The address of a job's page."""
    return f"/jobs/{quote(shown_id, safe='')}"


def _use_view(usage: JobUsage | None) -> UseView | None:
    return UseView(usage) if usage else None


def page_of(shown_id: str) -> JobPage:
    """The page of a job; raises NotFound."""
    job = services().jobs.get(person(), shown_id)
    return JobPage(job_views(person(), [JobRow(job)])[0])


def _parts(page: JobPage) -> Parts:
    """The parts that the page polls."""
    status = services().cluster.slurm_status()
    return render_parts(PARTS, page=page, row=page.row, status=status, person=person())


@blueprint.get("/jobs/<shown_id>")
def job(shown_id: str) -> ResponseReturnValue:
    """The page."""
    page = page_of(shown_id)
    parts = _parts(page)
    return render_template(
        "job.html",
        page=page,
        row=page.row,
        parts=parts.html,
        mark=parts.mark,
        back=page.url,
        person=person(),
    )


@blueprint.get("/jobs/<shown_id>/now")
@polled()
def job_now(shown_id: str) -> ResponseReturnValue:
    """The parts that the page polls; 204 if the browser already has them."""
    return _parts(page_of(shown_id)).answer()


@blueprint.get("/jobs/<shown_id>/usage")
def job_usage(shown_id: str) -> ResponseReturnValue:
    """Its usage, from Slurm or a recent query; redirects to the page without htmx."""
    page = page_of(shown_id)
    usage = services().job_use.refresh(person(), shown_id)
    if not by_htmx():
        return redirect(f"{page.url}#job-use", 303)
    return render_template("_job_use.html", page=page, row=page.row, use=_use_view(usage))


@blueprint.post("/jobs/<shown_id>/extend")
def extend_job(shown_id: str) -> ResponseReturnValue:
    """Extend a running job by the chosen time, else by the default."""
    services().jobs.extend(person(), shown_id, requested_minutes())
    flash("It has more time now.")
    return redirect(job_url(shown_id), 303)

"""The Jobs page: the list, and actions on its jobs."""

from __future__ import annotations

from dataclasses import dataclass

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.jobs.actions import JobAction, JobOutcome
from portal.core.jobs.query import MAX_AT_ONCE
from portal.core.units import plural
from portal.errors import FieldError, InvalidRequest
from portal.web.context import person, polled, reads_together, services
from portal.web.http.paths import here, local_path
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.pages.jobs.list_view import JobListView, list_of_request
from portal.web.pages.jobs.words import WORDS, dialog_label, job_label
from portal.web.pages.listing import Parts

PARTS = ("_tabs.html", "_job_state.html", "_job_rows.html")
"""The parts that the page polls; each is one element of the page."""
_ACTION = "<any(cancel,hold,release,requeue):action>"


@dataclass(frozen=True)
class Outcomes:
    """The results of an action on jobs."""

    action: JobAction
    all: list[JobOutcome]

    @property
    def failed(self) -> list[JobOutcome]:
        """The results for jobs on which it failed."""
        return [outcome for outcome in self.all if not outcome.done]

    @property
    def summary(self) -> str:
        """The results in one sentence."""
        succeeded = len(self.all) - len(self.failed)
        past = WORDS[self.action].past
        if not succeeded:
            return f"No job was {past}."
        number = plural(len(self.all), "job")
        counted = f"{succeeded} of {number}" if self.failed else number
        return f"{counted} {'was' if succeeded == 1 else 'were'} {past}."


def _parts(listing: JobListView) -> Parts:
    return listing.parts(PARTS, rows=listing.rows, status=listing.status)


@blueprint.get("/jobs")
@reads_together(cluster=True)
def jobs() -> ResponseReturnValue:
    """The page with the list."""
    listing = list_of_request()
    parts = _parts(listing)
    return render_template(
        "jobs.html",
        listing=listing,
        parts=parts.html,
        mark=parts.mark,
        back=here(),
        person=listing.person,
    )


@blueprint.get("/jobs/rows")
@polled()
def job_rows() -> ResponseReturnValue:
    """The parts that the page polls; 204 if the browser already has them."""
    return _parts(list_of_request()).answer()


@blueprint.get(f"/jobs/act/{_ACTION}")
def ask_act(action: str) -> ResponseReturnValue:
    """Ask for confirmation; scripts show a dialog instead."""
    ids = list(dict.fromkeys(request.args.getlist("ids")))[:MAX_AT_ONCE]
    back = local_path(request.args.get("back")) or "/jobs"
    if not ids:
        return redirect(back, 303)
    reader = person().name
    names = [
        dialog_label(job_label(target.name, target.id), target.owner, reader, array=target.is_array)
        for target in services().jobs.targets(person(), ids)
    ]
    return render_template(
        "job_act.html",
        action=action,
        ids=ids,
        names=names,
        back=back,
        person=person(),
    )


@blueprint.post(f"/jobs/act/{_ACTION}")
def act(action: str) -> ResponseReturnValue:
    """Cancel, hold, release or requeue jobs, and report the result for each."""
    ids = list(dict.fromkeys(request.form.getlist("ids")))
    if not 0 < len(ids) <= MAX_AT_ONCE:
        raise InvalidRequest([FieldError("ids", f"name 1 to {MAX_AT_ONCE} jobs")])
    job_action = JobAction(action)
    outcomes = Outcomes(job_action, services().jobs.act(person(), job_action, ids))
    if by_htmx():
        text = render_template("_job_outcomes.html", outcomes=outcomes)
        return _parts(list_of_request()).answer(extra=text)
    back = local_path(request.form.get("back")) or "/jobs"
    return render_template("job_acted.html", outcomes=outcomes, back=back, person=person())

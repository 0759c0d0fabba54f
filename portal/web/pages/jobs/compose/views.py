"""The composer: a new job from a form, checked, shown as a command, and submitted."""

from __future__ import annotations

from dataclasses import replace

from flask import Response, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.jobs.compose.submission import JobRequest
from portal.errors import (
    Conflict,
    InvalidRequest,
    KeyReused,
    NotFound,
    OutcomeUnknown,
    PortalError,
)
from portal.web.context import person, reads_together, services
from portal.web.http.idempotency import key_of_form
from portal.web.numbers import trim
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.pages.jobs.compose import form as fields
from portal.web.pages.jobs.compose.composer import (
    ComposeForm,
    composer_form,
    filled,
    with_error,
)
from portal.web.pages.launch.wizard import folder_list

_SENT = "This page has submitted another job already. To submit this one as well, press it again."
PANEL = "X-Slipway-Panel"
"""Response header: the page's script shows this response regardless of its status."""


@blueprint.get("/jobs/new")
def compose() -> ResponseReturnValue:
    """The composer: empty, or filled from one of the user's jobs, a template or a file."""
    args = request.args
    if "from" in args:
        return page(filled(person(), services().composer.again(person(), args["from"])))
    if "template" in args:
        owner = args.get("owner", person().name)
        template = services().job_templates.get(person(), owner, args["template"])
        return page(filled(person(), template.body))
    if "path" in args:
        return page(filled(person(), {fields.PATH: args["path"]}))
    return _empty()


@reads_together(cluster=True)
def _empty() -> Response:
    return page(composer_form(person()))


def page(
    form: ComposeForm, status: int = 200, check_output: str = "", command: str = ""
) -> Response:
    """The whole page, or only the form for htmx."""
    template = "_compose.html" if by_htmx() else "compose.html"
    html = render_template(
        template, form=form, person=person(), check_output=check_output, command=command
    )
    response = make_response(html, status)
    response.headers[PANEL] = "compose"
    return response


def entered_form(folders: bool = False) -> ComposeForm:
    """The composer with the submitted values."""
    return composer_form(person(), fields.submitted_values(request.form), folders)


def job_of_form() -> JobRequest:
    """The request in the form; raises InvalidRequest."""
    return services().composer.parse(person(), fields.to_body(request.form))


@blueprint.post("/jobs/new")
def submit_job() -> ResponseReturnValue:
    """Submit the form's job; on errors, show the form as it was sent."""
    try:
        key = None if "afresh" in request.form else key_of_form()
        number = services().composer.submit(person(), job_of_form(), key)
    except KeyReused:
        return page(with_error(entered_form(), Conflict(_SENT)), Conflict.status)
    except OutcomeUnknown as error:
        # With the same key, so that pressing the button again does not submit it twice.
        same = replace(entered_form(), key=request.form.get("key", ""), unclear=True)
        return page(with_error(same, error), error.status)
    except PortalError as error:
        return page(with_error(entered_form(), error), error.status)
    address = f"/jobs/submitted/{number}"
    return ("", 204, {"HX-Redirect": address}) if by_htmx() else redirect(address, 303)


@blueprint.get("/jobs/submitted/<number>")
def job_submitted(number: str) -> ResponseReturnValue:
    """Redirect to the page of a submitted job as soon as it appears in Slurm's queue."""
    if not services().composer.submitted(person(), number):
        raise NotFound("There is nothing here, or it is not yours.")
    try:
        services().jobs.get(person(), number)
    except NotFound:
        return render_template("job_submitted.html", number=number, person=person())
    return redirect(f"/jobs/{number}", 303)


@blueprint.post("/jobs/new/check")
def check_job() -> ResponseReturnValue:
    """Check the form's job with sbatch --test-only."""
    try:
        output = services().composer.check(person(), job_of_form())
    except PortalError as error:
        return page(_again(error), error.status)
    return page(_same_form(), check_output=output)


@blueprint.post("/jobs/new/command")
def job_command() -> ResponseReturnValue:
    """The command that submits the same job."""
    try:
        text = services().composer.command(job_of_form())
    except InvalidRequest as error:
        return page(_again(error), error.status)
    return page(_same_form(), command=text)


def _same_form() -> ComposeForm:
    """The form as it was sent, with the same key: nothing has been submitted."""
    return replace(entered_form(), key=request.form.get("key", ""))


def _again(error: PortalError) -> ComposeForm:
    return with_error(_same_form(), error)


@blueprint.post("/jobs/new/script")
def read_script() -> ResponseReturnValue:
    """Read the named file into the editor."""
    form = _same_form()
    try:
        text = services().composer.read_script(person(), trim(request.form.get(fields.PATH, "")))
    except PortalError as error:
        return page(with_error(form, error), error.status)
    values = {**form.values, fields.SCRIPT: text, fields.SOURCE: "editor"}
    return page(replace(form, entered=replace(form.entered, values=values)))


@blueprint.post("/jobs/new/again")
def compose_again() -> ResponseReturnValue:
    """The form as it was sent, with the list of folders; for browsers without JavaScript."""
    return page(replace(entered_form(folders=True), key=request.form.get("key", "")))


@blueprint.get("/jobs/new/folders")
def job_folders() -> ResponseReturnValue:
    """The list of folders, loaded after the page since it waits for the login node."""
    folders = folder_list(person(), fields.submitted_values(request.args).mounts)
    return render_template("_folders.html", folders=folders, errors={}, for_job=True)

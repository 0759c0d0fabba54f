"""Job templates: saving from the composer, the list, renaming and deleting."""

from __future__ import annotations

from dataclasses import replace

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.jobs.compose.drafts import Shared
from portal.core.jobs.compose.submission import JobRequest
from portal.errors import Conflict, FieldError, InvalidRequest, PortalError
from portal.web.context import person, services
from portal.web.numbers import trim
from portal.web.pages.blueprint import blueprint
from portal.web.pages.jobs.compose.composer import ComposeForm, with_error
from portal.web.pages.jobs.compose.views import entered_form, job_of_form, page


@blueprint.get("/jobs/templates")
def job_templates() -> ResponseReturnValue:
    """The page of all templates that the user may use."""
    return _list()


def _list(problem: str = "", status: int = 200) -> ResponseReturnValue:
    templates = services().job_templates.list(person())
    html = render_template(
        "job_templates.html", templates=templates, person=person(), problem=problem
    )
    return html, status


@blueprint.post("/jobs/templates")
def keep_template() -> ResponseReturnValue:
    """Save the composer's settings; a template of that name is replaced only on request."""
    name = trim(request.form.get("template", ""))
    form = replace(entered_form(), key=request.form.get("key", ""))
    try:
        shared, account = _shared()
        _save(name, job_of_form(), shared, account)
    except Conflict as error:
        return page(replace(form, taken=error.text), error.status)
    except InvalidRequest as error:
        return page(_not_saved(form, error), error.status)
    return page(replace(form, notice=f"Saved as {name}."))


def _save(name: str, job: JobRequest, shared: Shared, account: str) -> None:
    """Save it; errors of the account to share with are reported at the menu."""
    overwrite = "replace" in request.form
    try:
        services().job_templates.save(person(), name, job, shared, account, overwrite)
    except InvalidRequest as error:
        errors = [replace(e, field="shared") if e.field == "account" else e for e in error.errors]
        raise InvalidRequest(errors) from None


def _shared() -> tuple[Shared, str]:
    """Parse the menu of shares ("nobody", "site" or "account:NAME"); raises InvalidRequest."""
    kind, _, account = request.form.get("shared", "").partition(":")
    try:
        return (Shared(kind) if kind else Shared.NOBODY), account
    except ValueError:
        raise InvalidRequest([FieldError("shared", "choose with whom to share")]) from None


def _not_saved(form: ComposeForm, error: InvalidRequest) -> ComposeForm:
    rejected = with_error(form, error)
    if "template" in rejected.errors:
        return rejected
    text = "this cannot be saved yet: check the fields that are marked"
    return replace(rejected, errors={**rejected.errors, "template": text})


@blueprint.post("/jobs/templates/<name>/rename")
def rename_template(name: str) -> ResponseReturnValue:
    """Rename one of the user's own templates."""
    try:
        services().job_templates.rename(person(), name, trim(request.form.get("to", "")))
    except (InvalidRequest, Conflict) as error:
        return _list(_text(error), error.status)
    return redirect("/jobs/templates", 303)


def _text(error: PortalError) -> str:
    text = error.errors[0].message if isinstance(error, InvalidRequest) else error.text
    return text[0].upper() + text[1:]


@blueprint.post("/jobs/templates/<owner>/<name>/delete")
def delete_template(owner: str, name: str) -> ResponseReturnValue:
    """Delete one of the user's templates, or as an administrator one shared with everybody."""
    services().job_templates.remove(person(), owner, name)
    return redirect("/jobs/templates", 303)

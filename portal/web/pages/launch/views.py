"""Launching from the wizard; errors are shown beside the fields."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from flask import Response, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.launch.own_image import SUFFIX
from portal.core.launch_estimate import fits_now, starts_at_once
from portal.core.session.ended_lately import Shortage
from portal.core.session.session import Session
from portal.core.units import file_size
from portal.errors import (
    Conflict,
    HomeUnusable,
    InvalidRequest,
    KeyReused,
    PortalError,
    Unavailable,
)
from portal.services.launch.checks import Plan
from portal.web.context import person, reads_together, services
from portal.web.http.idempotency import key_of_form
from portal.web.numbers import trim
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.pages.launch import form as fields
from portal.web.pages.launch.wizard import (
    LaunchForm,
    folder_list,
    new_form,
    runs_in_own_home,
    with_error,
)

_SENT = "This page has launched something else already. To launch this as well, press Launch again."
PANEL = "X-Slipway-Panel"
"""Response header: the page's script shows this response regardless of its status."""


@blueprint.get("/sessions/new")
@reads_together(cluster=True)
def new_session() -> ResponseReturnValue:
    """The wizard: empty, or filled from one of the user's sessions or presets."""
    if "from" in request.args:
        form = filled(_copy(request.args["from"], request.args.get("more", "")))
    elif "preset" in request.args:
        form = filled(services().presets.get(person(), request.args["preset"]).to_launch)
    else:
        form = new_form(person())
    return wizard(form)


def _copy(session_id: str, resource: str) -> dict[str, object]:
    """The body that launches a copy of a session, with more of a resource (time or memory)."""
    body = services().sessions.clone_body(person(), session_id)
    if resource not in set(Shortage):
        return body
    session = services().sessions.get(person(), session_id)
    return services().sessions.enlarged(body, session, Shortage(resource))


def filled(body: dict[str, object]) -> LaunchForm:
    """The wizard filled with a launch request, with errors if that is no longer possible."""
    form = new_form(person(), fields.from_body(body))
    try:
        services().launch_checks.prepare(person(), body)
    except InvalidRequest as error:
        return with_error(form, error)
    return form


def wizard(form: LaunchForm, status: int = 200, review: str = "") -> Response:
    """The whole page, or only the form for htmx."""
    template = "_launch.html" if by_htmx() else "launch.html"
    html = render_template(template, form=form, person=person(), review=review)
    response = make_response(html, status)
    response.headers[PANEL] = "launch"
    return response


def entered_form(folders: bool = False) -> LaunchForm:
    """The wizard with the submitted values."""
    return new_form(person(), fields.submitted_values(request.form), folders)


def entered_plan(key: str | None = None) -> Plan:
    """The launch that the form describes; raises InvalidRequest. `key`: its idempotency key."""
    return services().launch_checks.prepare(person(), fields.to_body(request.form), key)


def go_to(created: list[Session]) -> ResponseReturnValue:
    """Redirect to the list, where the new sessions are highlighted."""
    address = "/sessions?new=" + ",".join(session.id for session in created)
    if by_htmx():
        return "", 204, {"HX-Redirect": address}
    return redirect(address, 303)


@blueprint.post("/sessions")
def launch() -> ResponseReturnValue:
    """Launch the form's request; on errors, show the form as it was sent."""
    try:
        key = key_of_form()
        plan = entered_plan(key)
        if not plan.request.mounts and not runs_in_own_home() and "confirmed" not in request.form:
            return ask_for_folders()
        created = services().launcher.launch(plan)
    except KeyReused:
        return wizard(with_error(entered_form(), Conflict(_SENT)), Conflict.status)
    except PortalError as error:
        return wizard(with_error(entered_form(), error), error.status)
    return go_to(created)


def ask_for_folders() -> ResponseReturnValue:
    """Ask whether to launch without a folder; scripts show a dialog instead."""
    return render_template(
        "launch_ask.html", fields=fields.resent_fields(request.form), person=person()
    )


@blueprint.post("/sessions/new")
def choose_again() -> ResponseReturnValue:
    """Return to a step (by default, the folders) with the submitted values."""
    step = request.args.get("step", "folders")
    step = step if step in fields.STEPS else "folders"
    return wizard(replace(entered_form(folders=step == "folders"), step=step))


@blueprint.get("/sessions/new/folders")
def folders() -> ResponseReturnValue:
    """The list of folders, loaded after the page since it waits for the login node."""
    mounts = fields.submitted_values(request.args).mounts
    proposed = fields.PROPOSED in request.args and bool(mounts)
    listed = replace(folder_list(person(), mounts), proposed=proposed)
    return render_template("_folders.html", folders=listed, errors={})


@blueprint.get("/sessions/new/images")
def own_images() -> ResponseReturnValue:
    """The user's image files as proposals; by their paths with `?paths`."""
    try:
        files, problem = services().storage.images(person()), ""
    except HomeUnusable as error:
        files, problem = [], error.text
    except Unavailable:
        files, problem = [], "Your image files cannot be listed right now; enter the name of one."
    return render_template(
        "_own_images.html",
        files=[
            (file.path if "paths" in request.args else file.name, file_size(file.size))
            for file in files
        ],
        problem=problem,
        suffix=SUFFIX,
    )


@blueprint.post("/folders")
def make_folder() -> ResponseReturnValue:
    """Create a storage folder, and select it."""
    entered = fields.submitted_values(request.form)
    name = trim(request.form.get("folder", ""))
    errors: dict[str, str] = {}
    try:
        if name:
            services().storage.make(person(), name)
            entered.mounts[name] = False
            entered.values["folder"] = ""
    except PortalError as error:
        text = error.errors[0].message if isinstance(error, InvalidRequest) else error.text
        errors = {"folder": text}
    form = replace(new_form(person(), entered, folders=True), errors=errors, step="folders")
    if not by_htmx():
        return wizard(form, 422 if errors else 200)
    return render_template(
        "_folders.html", folders=form.folders, errors=errors, typed=entered.values["folder"]
    )


@blueprint.post("/sessions/new/templates")
def templates() -> ResponseReturnValue:
    """The resource templates, and whether each fits the chosen resource group."""
    return render_template("_templates.html", form=entered_form())


@blueprint.post("/sessions/new/choice")
def choice() -> ResponseReturnValue:
    """The resources step for the chosen account, QOS and group, with the submitted values."""
    return render_template("_launch_resources.html", form=entered_form())


@blueprint.post("/sessions/new/review")
def review() -> ResponseReturnValue:
    """The settings as they would be submitted, or their errors."""
    form = entered_form()
    try:
        plan = entered_plan()
        launch_request, draft = plan.request, services().launcher.draft(plan).session
    except InvalidRequest as error:
        form = with_error(form, error)
        html = render_template("_review.html", form=form, launch_request=None)
    else:
        html = render_template(
            "_review.html",
            form=form,
            launch_request=launch_request,
            draft=draft,
            until=services().clock() + timedelta(minutes=draft.time_limit or 0),
            kind=services().gpus.named(draft.gpu_kind) if draft.fgpu else None,
            group=next((g for g in form.groups if g.name == draft.partition), None),
            free=form.uses.get(draft.partition or ""),
            now=fits_now(form.uses.get(draft.partition or ""), draft, launch_request.count),
            outlook=services().notices.launch_delay(person(), draft),
        )
    return html if by_htmx() else wizard(replace(form, step="review"), review=html)


@blueprint.post("/sessions/new/check")
def check() -> ResponseReturnValue:
    """The errors of the fields so far, and sizes with their units; for the page's script."""
    entered = fields.submitted_values(request.form)
    result: dict[str, object] = {"errors": {}, "problem": "", "variables": {}}
    try:
        entered_plan()
    except InvalidRequest as error:
        result = fields.all_errors(error)
    return result | {"values": {name: entered.values[name] for name in fields.SIZES}}


@blueprint.post("/sessions/new/estimate")
def estimate() -> ResponseReturnValue:
    """The estimated start of the sessions; a failure never prevents a launch."""
    estimated, now, count = None, None, 1
    try:
        plan = entered_plan()
        count = plan.request.count
        draft = services().launcher.draft(plan).session
        use = plan.view.cluster.usage_for(person().name, draft.partition, draft.slurm)
        now = None if draft.begin else fits_now(use, draft, count)
        estimated = services().estimates.estimate(plan)
    except (InvalidRequest, Unavailable):
        pass
    soon = starts_at_once(estimated, services().clock())
    return render_template("_estimate.html", estimate=estimated, now=now, count=count, soon=soon)


@blueprint.post("/sessions/<session_id>/relaunch")
def relaunch(session_id: str) -> ResponseReturnValue:
    """Launch a copy of this session; if that is rejected, show the wizard with the errors."""
    return launch_body(services().sessions.clone_body(person(), session_id), session_id)


def launch_body(body: dict[str, object], about: str, preset: str = "") -> ResponseReturnValue:
    """Launch a session or preset again; `about` makes the page's key unique for each of them."""
    try:
        key = key_of_form()
        plan = services().launch_checks.prepare(person(), body, key and f"{key}-{about}")
        created = services().launcher.launch(plan, preset)
    except KeyReused:
        form = new_form(person(), fields.from_body(body))
        return wizard(with_error(form, Conflict(_SENT)), Conflict.status)
    except PortalError as error:
        form = new_form(person(), fields.from_body(body))
        return wizard(with_error(form, error), error.status)
    return go_to(created)

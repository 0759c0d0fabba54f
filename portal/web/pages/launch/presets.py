"""Presets: saving the wizard's settings, and launching them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from flask import redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.launch.presets import Preset
from portal.errors import Conflict, InvalidRequest, PortalError
from portal.web.context import person, services
from portal.web.numbers import trim
from portal.web.pages.blueprint import blueprint, by_htmx
from portal.web.pages.launch import form as fields
from portal.web.pages.launch.views import entered_form, launch_body, wizard
from portal.web.pages.launch.wizard import LaunchForm, path_of, runs_in_own_home, with_error


@blueprint.app_context_processor
def presets_context() -> dict[str, object]:
    """The presets menu's data; looked up only by templates with that menu."""
    return {
        "my_presets": _mine,
        "new_key": lambda: uuid.uuid4().hex,
        "new_session_path": path_of,
        "asks_for_folder": lambda preset: _asks_for_folder(preset.body),
    }


def _asks_for_folder(body: Mapping[str, object]) -> bool:
    """Whether a session launched from this would keep no files."""
    return not body.get("mounts") and not runs_in_own_home()


def _mine() -> list[Preset]:
    return services().presets.list(person())


@blueprint.get("/presets")
def presets() -> ResponseReturnValue:
    """The page to launch, rename and delete presets."""
    return render_template("presets.html", presets=_mine(), person=person())


@blueprint.post("/presets")
def keep() -> ResponseReturnValue:
    """Save the wizard's settings; a preset of that name is replaced only on request."""
    name = trim(request.form.get("preset", ""))
    form = entered_form()
    try:
        launch = services().launch_checks.parse(fields.to_body(request.form))
        services().presets.save(person(), name, launch, "replace" in request.form)
        form = replace(form, notice=f"Saved as {name}.")
    except Conflict as error:
        form = replace(form, taken=error.text)
    except InvalidRequest as error:
        form = _not_saved(with_error(form, error))
    if by_htmx():
        return render_template("_preset_saved.html", form=form)
    return wizard(replace(form, step="review"), 422 if form.errors else 200)


def _not_saved(form: LaunchForm) -> LaunchForm:
    if "preset" in form.errors:
        return form
    text = "this cannot be saved yet: " + "; ".join([*form.errors.values(), form.problem])
    return replace(form, errors={**form.errors, "preset": text.rstrip("; ")})


@blueprint.post("/presets/<name>/launch")
def launch_preset(name: str) -> ResponseReturnValue:
    """Launch a preset; if that is rejected, show the wizard with the errors."""
    body = services().presets.get(person(), name).to_launch
    if _asks_for_folder(body) and "confirmed" not in request.form:
        return _ask_for_folder(name)
    return launch_body(body, name, preset=name)


def _ask_for_folder(name: str) -> ResponseReturnValue:
    """Ask whether to launch without a folder; scripts show a dialog instead."""
    quoted = quote(name, safe="")
    return render_template(
        "launch_ask.html",
        fields=fields.resent_fields(request.form),
        action=f"/presets/{quoted}/launch",
        choose=f"/sessions/new?preset={quoted}#folders",
        person=person(),
    )


@blueprint.post("/presets/<name>/rename")
def rename_preset(name: str) -> ResponseReturnValue:
    """Rename a preset."""
    try:
        services().presets.rename(person(), name, trim(request.form.get("to", "")))
    except (InvalidRequest, Conflict) as error:
        return _page_with(error)
    return redirect("/presets", 303)


def _page_with(error: PortalError) -> ResponseReturnValue:
    text = error.errors[0].message if isinstance(error, InvalidRequest) else error.text
    problem = text[0].upper() + text[1:]
    page = render_template("presets.html", presets=_mine(), person=person(), problem=problem)
    return page, error.status


@blueprint.post("/presets/<name>/delete")
def delete_preset(name: str) -> ResponseReturnValue:
    """Delete a preset."""
    services().presets.remove(person(), name)
    return redirect("/presets", 303)

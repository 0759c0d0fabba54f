"""The script of a job, which its page loads when its panel is opened."""

from __future__ import annotations

from flask import render_template
from flask.typing import ResponseReturnValue

from portal.errors import Conflict
from portal.web.context import person, services
from portal.web.pages.blueprint import blueprint


@blueprint.get("/jobs/<shown_id>/script")
def job_script(shown_id: str) -> ResponseReturnValue:
    """Part of the page, or the reason why there is none."""
    try:
        script = services().composer.script(person(), shown_id)
    except Conflict as error:
        return render_template("_job_script.html", problem=error.text)
    return render_template("_job_script.html", script=script)

"""The help page: short instructions and a glossary; readable without a login."""

from __future__ import annotations

from flask import render_template
from flask.typing import ResponseReturnValue
from flask_login import current_user

from portal.web.context import services
from portal.web.pages.blueprint import blueprint


@blueprint.get("/help")
def help_page() -> ResponseReturnValue:
    """The page; its texts depend on what this site offers."""
    who = current_user.person if current_user.is_authenticated else None
    settings = services().settings
    return render_template(
        "help.html",
        person=who,
        gpus=services().gpus,
        home=settings.sessions.home,
        storage=settings.sessions.storage,
        rules=services().administration.site_rules(),
    )

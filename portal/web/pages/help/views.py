"""The help page: short instructions and a glossary; readable without a login."""

from __future__ import annotations

from flask import render_template
from flask.typing import ResponseReturnValue
from flask_login import current_user

from portal.core.auth.person import Person
from portal.web.context import services, site_rules
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
        images=settings.images,
        rules=site_rules(),
        image=_an_image(who),
        example_fgpu=_an_amount(),
    )


def _an_image(who: Person | None) -> str:
    """An image for examples: one that the reader can use, so that they can be copied."""
    if who is not None:
        catalog = services().administration.visible_catalog(who, services().catalog())
        if found := catalog.proposed:
            return f"{found.environment}/{found.version}"
    return "NAME/VERSION"


def _an_amount() -> str:
    """An amount of the site's first kind of GPU; "" without GPUs."""
    kinds = services().gpus.kinds
    return f"{float(kinds[0].step):g}" if kinds else ""

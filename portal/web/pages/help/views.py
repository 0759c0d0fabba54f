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
    """The page; its texts depend on the site's configuration."""
    reader = current_user.person if current_user.is_authenticated else None
    settings = services().settings
    return render_template(
        "help.html",
        person=reader,
        gpus=services().gpus,
        home=settings.sessions.home,
        storage=settings.sessions.storage,
        images=settings.images,
        rules=site_rules(),
        image=_example_image(reader),
        example_fgpu=_example_fgpu(),
    )


def _example_image(reader: Person | None) -> str:
    """An image that the reader can use, so that examples can be copied."""
    if reader is not None:
        catalog = services().administration.visible_catalog(reader, services().catalog())
        if image := catalog.proposed:
            return f"{image.environment}/{image.version}"
    return "NAME/VERSION"


def _example_fgpu() -> str:
    """An amount of the site's first kind of GPU; "" without GPUs."""
    kinds = services().gpus.kinds
    return f"{float(kinds[0].step):g}" if kinds else ""

"""The contents of an image over the REST API."""

from __future__ import annotations

from portal.web.api import guarded
from portal.web.api.images.models import InsideOut
from portal.web.api.operation import operation
from portal.web.context import person, services

blueprint = guarded("images", for_services=True)


@blueprint.get("/environments/<environment>/<version>")
@operation("What is inside a version of an environment", InsideOut)
def get_image_contents(environment: str, version: str) -> InsideOut:
    """The date, sources and arguments of the image's build, and its installed packages."""
    return InsideOut.of(services().image_contents.inside(person(), environment, version))

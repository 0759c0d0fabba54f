"""What is inside an image, over the REST API."""

from __future__ import annotations

from portal.web.api import guarded
from portal.web.api.images.models import InsideOut
from portal.web.api.operation import operation
from portal.web.context import person, services

blueprint = guarded("images", for_services=True)


@blueprint.get("/environments/<environment>/<version>")
@operation("What is inside a version of an environment", InsideOut)
def get_image_contents(environment: str, version: str) -> InsideOut:
    """When, from what and how it was built, and all packages that are installed in it."""
    return InsideOut.of(services().image_contents.inside(person(), environment, version))

"""A user's own image: checked, or pulled into the user's cache, before the batch script starts."""

from __future__ import annotations

import os
import pwd
import sys

from portal.node.batch.execute.container import apptainer_command
from portal.node.batch.image import site
from portal.node.batch.image.files import open_file
from portal.node.batch.image.pull import Limits, image_of
from portal.node.batch.settings import SettingsError, load
from portal.node.common.reference import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.batch.request import Request

CACHE = ".slipway/images"
"""In the home directory, as for sessions."""


def find_image(request: Request) -> list[int]:
    """Resolve the request's image to a file, which the job's steps on other nodes use as well.

    Returns descriptors that have to stay open while it is in use. Raises ImageError.
    """
    if not request.own:
        return []
    if "://" not in request.image:
        folder, name = os.path.split(os.path.realpath(request.image))
        return [open_file(folder, name, request.max_mb, _hidden())]
    reference = parse(request.image)
    insecure = [reference.host] if request.insecure else []
    folder = os.path.join(os.path.expanduser("~"), CACHE)
    limits = Limits(folder, request.max_mb, request.cache_mb, insecure)
    program = apptainer_command(request.apptainer, os.environ)
    image, lock = image_of(reference, None, limits, program, _tell)
    site.check(image, request.image, _hidden())
    request.image = os.readlink(f"/proc/self/fd/{image}")
    return [image, lock]


def _hidden() -> list[site.SiteFile]:
    """Return the site's images that this user may not use, if the node has the settings.

    A retired image is refused at submission only: jobs in the queue keep it.
    """
    try:
        return load().refused_files(pwd.getpwuid(os.getuid()).pw_name, retired=False)
    except (SettingsError, KeyError):
        return []  # `slipway sbatch` has checked the file


_last_kind = ""


def _tell(text: str) -> None:
    """Write progress to the job's output, each kind of message once."""
    global _last_kind  # noqa: PLW0603 - the job has one image
    kind = text.partition(" ")[0]
    if kind != _last_kind:
        print(f"Slipway: {text}", file=sys.stderr, flush=True)
    _last_kind = kind

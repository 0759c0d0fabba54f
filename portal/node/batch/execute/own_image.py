"""A batch job's own image: checked, or pulled into the person's cache, before the script starts."""

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
    """Have the request name a file, which the job's steps on other nodes use as well.

    Returns descriptors that have to stay open while it is in use. Raises ImageError.
    """
    if not request.own:
        return []
    if "://" not in request.image:
        folder, name = os.path.split(os.path.realpath(request.image))
        return [open_file(folder, name, request.max_mb, _hidden())]
    wanted = parse(request.image)
    insecure = [wanted.host] if request.insecure else []
    folder = os.path.join(os.path.expanduser("~"), CACHE)
    limits = Limits(folder, request.max_mb, request.cache_mb, insecure)
    program = apptainer_command(request.apptainer, os.environ)
    image, lock = image_of(wanted, None, limits, program, _tell)
    site.check(image, request.image, _hidden())
    request.image = os.readlink(f"/proc/self/fd/{image}")
    return [image, lock]


def _hidden() -> list[site.SiteFile]:
    """Those of the site's images that this user does not see, where the node knows them.

    A retired image is refused when a job is submitted: what waits in the queue keeps it.
    """
    try:
        return load().refused_files(pwd.getpwuid(os.getuid()).pw_name, retired=False)
    except (SettingsError, KeyError):
        return []  # `slipway sbatch` has looked at the file


_said = ""


def _tell(text: str) -> None:
    """Write what is being done to the job's output, each kind once."""
    global _said  # noqa: PLW0603 - the job has one image
    begin = text.partition(" ")[0]
    if begin != _said:
        print(f"Slipway: {text}", file=sys.stderr, flush=True)
    _said = begin

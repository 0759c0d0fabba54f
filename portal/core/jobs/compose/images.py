"""Which images a job can be given: the site's, or where permitted one's own."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable

from portal.core.apps.catalog import Catalog
from portal.core.launch.site_files import RefusedFile, refusal
from portal.errors import clip


def image_problem(
    image: str, catalog: Catalog, own_images: Collection[str], refused: Iterable[RefusedFile] = ()
) -> str:
    """Why a job cannot have this image, as a message; "" if it can, or `slipway sbatch` decides.

    `catalog`: what the user may see; `own_images`: "file" and schemes such as "docker", as in the
    settings; `refused`: files of the site's that the user may not start. The same rules as those
    of the command (node/batch/request.py).
    """
    scheme, colon, _ = image.partition("://")
    if colon:
        return "" if scheme in own_images else f"images from {clip(scheme)}:// are not permitted"
    if image.startswith(("/", "./", "../", "~")) or image.endswith(".sif"):
        if "file" not in own_images:
            return "your own image files are not permitted here"
        return refusal(posixpath.normpath(image), refused)
    environment, slash, version = image.partition("/")
    if catalog.image(environment, None) is None:
        return f"there is no image named {clip(environment)}"
    found = catalog.image(environment, version) if slash else None
    if slash and found is None:
        return f"{clip(environment)} has no version {clip(version)}"
    if found is not None and found.retired:
        return f"{clip(environment)}/{clip(version)} was retired by an administrator"
    return ""

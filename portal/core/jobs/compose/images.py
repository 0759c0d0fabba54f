"""The images that a job may use: the site's and, where permitted, the user's own."""

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

    `catalog` has the images that the user may see; `own_images` is "file" and schemes such as
    "docker", as in the settings; `refused` are the site's files that the user may not start. The
    command applies the same rules (portal/node/batch/request.py).
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
    entry = catalog.image(environment, version) if slash else None
    if slash and entry is None:
        return f"{clip(environment)} has no version {clip(version)}"
    if entry is not None and entry.retired:
        return f"{clip(environment)}/{clip(version)} was retired by an administrator"
    return ""

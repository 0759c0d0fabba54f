"""Whether users can bypass the visibility of an image by its file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from portal.cli.findings import Finding, warn
from portal.config import Settings
from portal.core.admin.descriptions import describe_rule
from portal.core.admin.images import ImageRule, image_rule
from portal.core.apps.catalog import Catalog, Image


def check_image_files(
    settings: Settings, catalog: Catalog, rules: Iterable[ImageRule]
) -> Iterator[Finding]:
    """Report overlaps of image folders, and hidden images whose files all users can read."""
    all_rules = list(rules)
    yield from _overlaps(settings)
    for image in (*catalog.images, *catalog.retired, *catalog.left_out):
        rule = image_rule(image, all_rules)
        file = None if rule.seen_by == "everybody" else _readable(image)
        if file is not None:
            yield warn(
                f"{image.environment} {image.version} is shown to {describe_rule(rule)}, but every "
                f"user of the nodes may read {file}, and what can be read can be copied and run "
                "without Slipway: give its folder a group or an ACL (docs/administrators/images.md)"
            )


def _overlaps(settings: Settings) -> Iterator[Finding]:
    site = Path(settings.sessions.images)
    if settings.images.own == "off":
        return
    for folder in settings.images.folders:
        if _contains(Path(folder), site) or _contains(site, Path(folder)):
            yield warn(
                f"images.folders: {folder} overlaps sessions.images ({site}): users can start the "
                "site's images by their paths as their own, without their apps and titles, and "
                "beside the versions that are offered; name a folder of its own"
            )


def _contains(outer: Path, inner: Path) -> bool:
    """Whether a folder is another one or its parent, also by links and bind mounts."""
    real = Path(os.path.realpath(inner))
    return any(_same(outer, folder) for folder in (real, *real.parents))


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _readable(image: Image) -> str | None:
    """The first file of an image that all users of this machine can read."""
    return next((file.path for file in image.files if _everybody_reads(file.path)), None)


def _everybody_reads(path: str) -> bool:
    real = Path(os.path.realpath(path))
    try:
        return bool(real.stat().st_mode & stat.S_IROTH) and all(
            folder.stat().st_mode & stat.S_IXOTH for folder in real.parents
        )
    except OSError:
        return False

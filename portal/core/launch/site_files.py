"""Files of the site's images: rules about images apply to them under any name or path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class SifFile(NamedTuple):
    """A file of one of the site's images."""

    path: str
    """Its absolute path on the compute nodes."""
    id: str
    """The id in its SIF header, shared by copies, in hexadecimal; "" if unknown."""


class RefusedFile(NamedTuple):
    """A file that a person may not start as an own image."""

    path: str
    id: str
    reason: str
    """What follows "FILE is one of the site's images: "."""
    retired: bool
    """Whether it is refused to everybody, by its retirement."""


def refusal(path: str, refused: Iterable[RefusedFile]) -> str:
    """Why the file at this path must not be started; "" if its path is not refused.

    Links, other mounts and copies are recognised only by the user's own processes
    (node/batch/image/site.py).
    """
    return next((site_image(file.reason) for file in refused if file.path == path), "")


def site_image(reason: str) -> str:
    """The message of a refusal."""
    return f"this is one of the site's images: {reason}"

"""Names of images in commands: ENVIRONMENT/VERSION."""

from __future__ import annotations

import re
from typing import NamedTuple

PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,62}")
TOOLKIT = "toolkit"
"""A folder beside the recipes that is not a recipe."""


class ImageError(Exception):
    """An image cannot be built, tested, retired or deleted; the text says why and what to do."""


class ImageName(NamedTuple):
    """An environment and its version."""

    environment: str
    version: str

    def __str__(self) -> str:
        return f"{self.environment}/{self.version}"


def parse_name(text: str) -> ImageName:
    """Read ENVIRONMENT/VERSION; raises ImageError."""
    environment, slash, version = text.partition("/")
    if not slash or not PART.fullmatch(environment) or not PART.fullmatch(version):
        raise ImageError(
            f"{text!r} is not the name of an image: write ENVIRONMENT/VERSION, such as python/3.13 "
            "(letters, digits and . _ + - in both)"
        )
    return ImageName(environment, version)

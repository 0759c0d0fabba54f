"""Reads the site's apps and images from their folders."""

from __future__ import annotations

import logging
import re
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from portal.core.app import AppSpec, Catalog, Image, describe_problem

log = logging.getLogger(__name__)

FRESH_SECONDS = 10.0


class CatalogError(Exception):
    """A description is wrong; the text names the file and the reason."""


def read_app(folder: Path) -> AppSpec:
    """One app of apps/<name>/; raises CatalogError."""
    file = folder / "app.toml"
    data = _read(file)
    start = folder / "start.sh"
    script = start.read_text(encoding="utf-8") if start.exists() else ""
    if not script and "shares" not in data:
        raise CatalogError(f"{file}: there is no start.sh beside it and it shares no other app")
    try:
        return AppSpec.model_validate({**data, "name": folder.name, "script": script})
    except ValidationError as error:
        raise CatalogError(f"{file}: {describe_problem(error)}") from error


def read_image(folder: Path) -> Image:
    """One image of images/<env>/<version>/; raises CatalogError."""
    file = folder / "image.toml"
    names = {
        "environment": folder.parent.name,
        "version": folder.name,
        "path": str(folder / "image.sif"),
    }
    try:
        return Image.model_validate({**_read(file), **names})
    except ValidationError as error:
        raise CatalogError(f"{file}: {describe_problem(error)}") from error


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogError(f"{file}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{file}: {error}") from error


class FolderCatalog:
    """The catalog of two folders; new images show up without a restart."""

    def __init__(self, apps: str, images: str) -> None:
        self._apps = Path(apps)
        self._images = Path(images)
        self._lock = threading.Lock()
        self._known: tuple[float, Catalog] | None = None

    def __call__(self) -> Catalog:
        """The catalog, at most ten seconds old; a wrong description is left out and logged."""
        with self._lock:
            now = time.monotonic()
            if self._known is None or now - self._known[0] > FRESH_SECONDS:
                self._known = (now, self._scan())
            return self._known[1]

    def _scan(self) -> Catalog:
        apps, images = {}, []
        for file in sorted(self._apps.glob("*/app.toml")):
            try:
                apps[file.parent.name] = read_app(file.parent)
            except CatalogError as error:
                log.error("left out: %s", error)
        for file in self._images.glob("*/*/image.sif"):
            try:
                images.append(read_image(file.parent))
            except CatalogError as error:
                log.error("left out: %s", error)
        return Catalog(apps=apps, images=tuple(sorted(images, key=_newest_first)))


def _newest_first(image: Image) -> tuple[str, list[int]]:
    numbers = [-int(part) for part in re.findall(r"\d+", image.version)]
    return image.environment, numbers

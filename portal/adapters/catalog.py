"""Reads the site's apps and images from their folders."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from portal.adapters.images.folder import LINK, RETIRED, current_file, read_inventory
from portal.adapters.images.ids import SifFiles
from portal.core.apps.catalog import AppSpec, Catalog, Image, misfits, problems_of
from portal.core.images.inside import search_words
from portal.core.images.inventory import inventory_name
from portal.core.launch.own_image import OWN
from portal.core.launch.site_files import SifFile

log = logging.getLogger(__name__)

FRESH_SECONDS = 10.0
RENAMED = {"script": "command"}
"""Keys in the file of fields that have a different name."""
DetectedApps = Mapping[tuple[str, str], tuple[str, ...]]


class CatalogError(Exception):
    """A description is invalid; the text names file, line and reason."""


def read_app(folder: Path) -> AppSpec:
    """Read the app in apps/<name>/; raises CatalogError."""
    file = folder / "app.toml"
    text, data = _read(file)
    for key in {"name", "script"} & data.keys():
        raise CatalogError(_message(file, text, key, "there is no such field"))
    start = folder / "start.sh"
    script = data.pop("command", "")
    if start.exists():
        if script:
            raise CatalogError(_message(file, text, "command", "there is a start.sh, too"))
        script = _text(start)
    try:
        return AppSpec.model_validate({**data, "name": folder.name, "script": script})
    except ValidationError as error:
        raise CatalogError(_described(file, text, error)) from error


def read_image(
    folder: Path,
    words: Callable[[Path], tuple[str, ...]] = lambda _: (),
    files: tuple[SifFile, ...] = (),
) -> Image:
    """Read the image in images/<env>/<version>/; `words`: its main packages, `files`: SIF files.

    Raises CatalogError.
    """
    file = folder / "image.toml"
    text, data = _read(file)
    current = current_file(folder)
    names = {
        "environment": folder.parent.name,
        "version": folder.name,
        "path": str(current),
        "retired": (folder / RETIRED).exists(),
        "packages": words(current),
        "files": files,
    }
    try:
        return Image.model_validate({**data, **names})
    except ValidationError as error:
        raise CatalogError(_described(file, text, error)) from error


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    text = _text(file)
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason, _, position = str(error).partition(" (at ")
        match = re.match(r"line (\d+)", position)
        line = int(match[1]) if match else text.rstrip().count("\n") + 1
        raise CatalogError(f"{file}, line {line}: {reason}") from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CatalogError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise CatalogError(f"{file}, line {line}: this is not UTF-8") from error


def _described(file: Path, text: str, error: ValidationError) -> str:
    """All errors of one file, each with its line."""
    problems = [(RENAMED.get(key, key), problem) for key, problem in problems_of(error)]
    return "; ".join(_message(file, text, key, problem) for key, problem in problems)


def _message(file: Path, text: str, key: str, problem: str) -> str:
    top = key.partition(".")[0]
    line = _line_of(text, top)
    return f"{file}{f', line {line}' if line else ''}: {top}: {problem}"


def _line_of(text: str, key: str) -> int | None:
    """The line of a key, from 1; None if it is absent."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if re.match(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""", line):
            try:
                # It is not inside a multi-line string if all preceding lines parse.
                tomllib.loads("".join(lines[:number]))
            except tomllib.TOMLDecodeError:
                continue
            return number + 1
    return None


class _Packages:
    """The main packages of each image, read again only after a change of its inventory."""

    def __init__(self) -> None:
        self._cached: dict[Path, tuple[int, tuple[str, ...]]] = {}

    def __call__(self, image: Path) -> tuple[str, ...]:
        """The main packages of one image's file; () without an inventory."""
        try:
            changed = image.with_name(inventory_name(image.name)).stat().st_mtime_ns
        except OSError:
            self._cached.pop(image, None)
            return ()
        if self._cached.get(image, (0, ()))[0] != changed:
            inventory = read_inventory(image)
            self._cached[image] = (changed, search_words(inventory.packages) if inventory else ())
        return self._cached[image][1]


class FolderCatalog:
    """The catalog of the folders' content; new apps and images appear without a restart."""

    def __init__(
        self, apps: tuple[str, ...], images: str, detected_apps: Callable[[], DetectedApps] = dict
    ) -> None:
        """An app in a later folder of `apps` replaces one of the same name in earlier ones."""
        self._apps = [Path(folder) for folder in apps]
        self._images = Path(images)
        self._detected_apps = detected_apps
        self._lock = threading.Lock()
        self._packages = _Packages()
        self._files = SifFiles()
        self._cached: tuple[float, Catalog] | None = None

    def __call__(self) -> Catalog:
        """The catalog, at most about ten seconds old; invalid descriptions are left out and logged.

        If the folders cannot be read, the cached catalog is returned; without one, OSError is
        raised. While one thread reads the folders, which may be on a slow file system, the others
        get the cached catalog.
        """
        cached = self._cached
        if cached is not None and time.monotonic() - cached[0] <= FRESH_SECONDS:
            return cached[1]
        if not self._lock.acquire(blocking=cached is None) and cached is not None:
            return cached[1]
        try:
            return self._read()
        finally:
            self._lock.release()

    def _read(self) -> Catalog:
        now = time.monotonic()
        if self._cached is None or now - self._cached[0] > FRESH_SECONDS:
            catalog = self._scanned()
            self._log(catalog.problems)
            self._cached = (now, catalog)
        return self._cached[1]

    def _scanned(self) -> Catalog:
        try:
            return self._scan()
        except (CatalogError, OSError) as error:
            if self._cached is None:
                raise
            return self._cached[1].model_copy(update={"problems": (str(error),)})

    def _log(self, problems: tuple[str, ...]) -> None:
        logged = self._cached[1].problems if self._cached else ()
        for problem in problems:
            if problem not in logged:
                log.error("left out: %s", problem)

    def _scan(self) -> Catalog:
        problems: list[str] = []
        apps = dict(self._read_apps(problems))
        left_out: list[Image] = []
        images = sorted(self._read_images(apps, left_out, problems), key=_newest_first)
        return Catalog(
            apps=apps,
            images=tuple(image for image in images if not image.retired),
            retired=tuple(image for image in images if image.retired),
            left_out=tuple(left_out),
            detected=dict(self._detected_apps()),
            problems=tuple(problems),
        )

    def _read_apps(self, problems: list[str]) -> Iterator[tuple[str, AppSpec]]:
        apps = {}
        folders = {folder.name: folder for parent in self._apps for folder in parent.glob("[!.]*/")}
        for name, folder in sorted(folders.items()):
            try:
                apps[name] = read_app(folder)
            except (CatalogError, OSError) as error:
                problems.append(str(error))
        invalid = misfits(apps)
        for name, spec in apps.items():
            if name not in invalid:
                yield name, spec
                continue
            file = folders[name] / "app.toml"
            problems.append(_message(file, _text(file), *invalid[name]))

    def _read_images(
        self, apps: Mapping[str, AppSpec], left_out: list[Image], problems: list[str]
    ) -> Iterator[Image]:
        for folder in sorted(self._images.glob("*/*")):
            files = self._files(folder)
            if not files:
                continue
            try:
                yield self._read_image(folder, files, apps, problems)
                continue
            except FileNotFoundError:
                pass  # image.sif is missing: its first build, or its removal, has not ended
            except (CatalogError, OSError) as error:
                problems.append(str(error))
            left_out.append(_left_out(folder, files))

    def _read_image(
        self,
        folder: Path,
        files: tuple[SifFile, ...],
        apps: Mapping[str, AppSpec],
        problems: list[str],
    ) -> Image:
        file = folder / "image.toml"
        (folder / LINK).stat()
        if folder.parent.name == OWN:
            raise CatalogError(f"{file}: {OWN} stands for people's own images; rename the folder")
        image = read_image(folder, self._packages, files)
        for key, names in (("apps", image.apps), ("default_app", (image.default_app,))):
            problems += [
                _message(file, _text(file), key, f"there is no app {name}")
                for name in names
                if name is not None and name not in apps
            ]
        return image


def _left_out(folder: Path, files: tuple[SifFile, ...]) -> Image:
    return Image(
        environment=folder.parent.name,
        version=folder.name,
        path=str(folder / LINK),
        title=folder.name,
        retired=os.path.exists(folder / RETIRED),
        files=files,
    )


def _newest_first(image: Image) -> tuple[str, list[int]]:
    numbers = [-int(part) for part in re.findall(r"\d+", image.version)]
    return image.environment, numbers

"""Recipes in local folders."""

from __future__ import annotations

from pathlib import Path

from portal.core.images.names import ImageError, ImageName
from portal.core.images.recipe import Sources, read_suite
from portal.core.interfaces.images import Recipes

DEFINITION, BASE, DESCRIPTION = "image.def", "base", "image.toml"


class FolderRecipes(Recipes):
    """Recipes in <folder>/<environment>/<version>/."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder(self, name: ImageName) -> Path | None:
        folder = (self._folder / name.environment / name.version).absolute()
        return folder if (folder / DEFINITION).is_file() else None

    def read(self, folder: Path) -> Sources:
        name = ImageName(folder.parent.name, folder.name)
        base = folder / BASE
        try:
            files = {
                str(path.relative_to(folder)): path.read_bytes()
                for path in sorted(folder.rglob("*"))
                if path.is_file() and "__pycache__" not in path.parts
            }
            suite = read_suite(base.read_text("utf-8"), str(base)) if base.is_file() else ""
            definition = (folder / DEFINITION).read_text("utf-8")
        except OSError as error:
            raise ImageError(f"{error.filename}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ImageError(f"{folder}: {DEFINITION} or {BASE} is not UTF-8") from error
        return Sources(name=name, definition=definition, suite=suite, files=files)

"""URLs of the pages' scripts and style sheets, bundled by portal/web/client/build.sh."""

from __future__ import annotations

import json
import logging
from functools import cached_property
from pathlib import Path
from typing import TypedDict

from flask import Flask, Response, request, url_for
from markupsafe import Markup

log = logging.getLogger(__name__)

FOLDER = "built"
"""Subfolder of the static files. File names in it contain a hash of the content."""
FOREVER = "public, max-age=31536000, immutable"


class Built(TypedDict):
    """A file of the manifest, and the modules that a script loads at once."""

    file: str
    preload: list[str]


class Bundles:
    """The bundles, by the names of their sources, such as login.js."""

    def __init__(self, static: Path) -> None:
        self._folder = static / FOLDER

    @cached_property
    def _manifest(self) -> dict[str, Built]:
        try:
            manifest: dict[str, Built] = json.loads((self._folder / "manifest.json").read_text())
        except FileNotFoundError:
            log.warning("%s is not there: pages have no scripts and styles", self._folder)
            return {}
        return manifest

    def url(self, name: str) -> str:
        """The URL of the bundle of the source `name`, or of `name` itself before a build."""
        return self._url(self._manifest[name]["file"] if self._manifest else name)

    def tags(self, page: str) -> Markup:
        """The style sheet and the script of a page, with the modules that the script loads at once.

        `page`: an entry of portal/web/client/pages, which may have only one of the two. Pages
        without a script load that of the entry "plain".
        """
        sheet, script = f"{page}.css", f"{page}.js"
        if script not in self._manifest:
            script = "plain.js"
        tags = []
        if sheet in self._manifest:
            tags.append(Markup('<link rel="stylesheet" href="{}">').format(self.url(sheet)))
        if script in self._manifest:
            tags += [
                Markup('<link rel="modulepreload" href="{}">').format(self._url(part))
                for part in self._manifest[script]["preload"]
            ]
            tags.append(Markup('<script type="module" src="{}"></script>').format(self.url(script)))
        return Markup("\n  ").join(tags)

    @staticmethod
    def _url(file: str) -> str:
        return url_for("static", filename=f"{FOLDER}/{file}")


def install(app: Flask) -> None:
    """Add the bundles to the globals of templates, and let browsers cache them without limit."""
    bundles = Bundles(Path(str(app.static_folder)))
    app.jinja_env.globals.update(bundle=bundles.tags, built=bundles.url)

    @app.after_request
    def keep(response: Response) -> Response:
        name = (request.view_args or {}).get("filename", "")
        if (
            request.endpoint == "static"
            and name.startswith(f"{FOLDER}/")
            and response.status_code < 400
        ):
            response.headers["Cache-Control"] = FOREVER
        return response

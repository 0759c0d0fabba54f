"""The site's logo and colours, at public URLs."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flask import Blueprint, Flask, Response

from portal.config.web import WebSettings
from portal.core.colours import Scheme, accent
from portal.errors import NotFound

log = logging.getLogger(__name__)

MOST_BYTES = 256 * 1024
_PNG = b"\x89PNG\r\n\x1a\n"
_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""An SVG that is opened by its URL runs no script and loads nothing."""


@dataclass(frozen=True)
class File:
    """A file to serve, and its URL."""

    url: str
    content: bytes
    content_type: str


def read_logo(path: str) -> tuple[bytes, str]:
    """Read a logo and determine its content type; raises ValueError for an invalid file."""
    file = Path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path} is larger than {MOST_BYTES // 1024} KB")
        content = file.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    if file.suffix == ".png" and not content.startswith(_PNG):
        raise ValueError(f"{path} is not a PNG file")
    if file.suffix == ".svg" and b"<svg" not in content[:4096]:
        raise ValueError(f"{path} is not an SVG file")
    return content, _TYPES[file.suffix]


def install(app: Flask, web: WebSettings) -> None:
    """Serve the files in the settings, and set their URLs for templates ("": Slipway's default)."""
    logo = _logo(web.logo, "logo")
    dark = _logo(web.logo_dark, "logo_dark") or logo
    style = _style(web)
    app.jinja_env.globals.update(
        site_logo=logo.url if logo else "",
        site_logo_dark=dark.url if dark else "",
        site_style=style.url if style else "",
    )
    # Not a module's blueprint, since tests build several applications.
    blueprint = Blueprint("branding", __name__)
    for name, file in (("logo", logo), ("logo_dark", dark), ("style", style)):
        blueprint.add_url_rule(f"/site/{name}", f"site_{name}", _view(file))
    app.register_blueprint(blueprint)


def _logo(path: str, name: str) -> File | None:
    """The logo; a file that cannot be read must not keep the portal from starting."""
    if not path:
        return None
    try:
        content, content_type = read_logo(path)
    except ValueError as error:
        log.error("web.%s: %s; Slipway's own logo is shown", name, error)
        return None
    return File(_address(name, content), content, content_type)


def _style(web: WebSettings) -> File | None:
    schemes: tuple[tuple[str, str, Scheme], ...] = (
        (":root", web.accent, "light"),
        ('[data-bs-theme="dark"]', web.accent_dark, "dark"),
    )
    rules = [_rule(selector, colour, scheme) for selector, colour, scheme in schemes if colour]
    if not rules:
        return None
    if web.accent and not web.accent_dark:
        # Without an accent for dark pages, these keep Slipway's.
        rules[0] = rules[0].replace(":root", ':root:not([data-bs-theme="dark"])')
    content = "\n".join(rules).encode()
    return File(_address("style", content), content, "text/css; charset=utf-8")


def _rule(selector: str, colour: str, scheme: Scheme) -> str:
    colours = accent(colour, scheme)
    return (
        f"{selector} {{ --mark: {colours.mark}; --mark-hover: {colours.hover}; "
        f"--on-mark: {colours.on_mark}; --mark-soft: {colours.soft}; }}"
    )


def _address(name: str, content: bytes) -> str:
    return f"/site/{name}?v={hashlib.sha256(content).hexdigest()[:10]}"


def _view(file: File | None) -> Callable[[], Response]:
    def serve() -> Response:
        if file is None:
            raise NotFound("There is nothing here.")
        response = Response(file.content, content_type=file.content_type)
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    return serve

"""Jinja filters and globals: times, icons, sizes and URLs of static files."""

from __future__ import annotations

import hashlib
import logging
from datetime import datetime
from functools import cache
from pathlib import Path

from flask import Flask, url_for
from markupsafe import Markup
from sqlalchemy.exc import SQLAlchemyError

from portal.core.apps.titles import Naming
from portal.core.auth.person import Person
from portal.core.cluster.gpu_offers import share as gpu_share
from portal.core.cluster.gpu_offers import unit_words
from portal.core.launch.environment import HIDDEN_NAMES
from portal.core.notices.maintenance import sentence
from portal.core.units import (
    exact_size,
    fgpu_number,
    floor_size,
    parse_size,
    rounded_size,
    short_minutes,
)
from portal.errors import visible
from portal.services.notices import ShownNotices
from portal.web import bundles
from portal.web.context import services

log = logging.getLogger(__name__)


def moment(value: datetime | None, form: str = "clock") -> Markup:
    """A `<time>` element, which the browser converts to its own time zone."""
    if value is None:
        return Markup("")
    return Markup('<time datetime="{}" data-form="{}">{} UTC</time>').format(
        value.isoformat(), form, f"{value:%Y-%m-%d %H:%M:%S}"
    )


@cache
def icon(name: str) -> Markup:
    """A decorative icon, hidden from screen readers."""
    return Markup('<i class="bi bi-{}" aria-hidden="true"></i>').format(name)


def install_filters(app: Flask) -> None:
    """Register the filters and globals of all templates."""
    app.jinja_env.filters.update(
        size=rounded_size,
        bound=floor_size,
        span=short_minutes,
        moment=moment,
        exact=exact_size,
        mb=parse_size,
        fgpu=fgpu_number,
        visible=visible,
        sentence=sentence,
        worker_down=lambda status: status.worker_down(services().clock()),
    )
    bundles.install(app)
    app.jinja_env.globals.update(
        icon=icon,
        asset=_Assets(app).url,
        gpu_share=gpu_share,
        unit_words=unit_words,
        naming=naming,
        secret_names=HIDDEN_NAMES,
        environment_title=environment_title,
        site_notices=site_notices,
    )


def naming(environment: str, version: str | None) -> Naming:
    """The names of an environment's version, as pages show them."""
    return services().catalog().naming(environment, version)


def environment_title(environment: str) -> str:
    """The title of an environment, as pages show it."""
    return services().catalog().environment_title(environment)


def site_notices(person: object) -> ShownNotices:
    """The announcements and the maintenance to show; none if the database does not respond.

    The error page that reports the database failure shows them, too, so this must not raise.

    `person`: the template variable, which is undefined on pages without a login.
    """
    try:
        return services().notices.shown(isinstance(person, Person))
    except SQLAlchemyError:
        log.warning("announcements cannot be read", exc_info=True)
        return ShownNotices([], None)


class _Assets:
    """URLs of static files with a hash of their content, so that browsers may cache them."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._hashes: dict[str, str] = {}

    def url(self, name: str) -> str:
        """The URL of a file, which need not exist yet."""
        if name not in self._hashes:
            self._hashes[name] = self._hash(name)
        return url_for("static", filename=name, v=self._hashes[name])

    def _hash(self, name: str) -> str:
        try:
            content = Path(str(self._app.static_folder), name).read_bytes()
        except OSError:
            return "0"
        return hashlib.sha256(content).hexdigest()[:10]

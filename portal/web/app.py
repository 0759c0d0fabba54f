"""The web application: pages, REST API, runner call-backs and the gate. No decisions."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from portal.services.assembly import Services
from portal.version import release
from portal.web import (
    branding,
    caller,
    context,
    errors,
    monitoring,
    observed,
    pages,
    runner,
    security,
)
from portal.web.api import openapi
from portal.web.auth import browser, provider
from portal.web.auth.session_cookie import SessionCookie
from portal.web.context import EXTENSION
from portal.web.formatting import install_filters
from portal.web.gate import data
from portal.web.gate import views as gate
from portal.web.http.body import MAX_FIELDS, BoundedRequest
from portal.web.http.body_timeout import BodyTimeout
from portal.web.http.delivery import Delivery
from portal.web.http.json import StrictJson
from portal.web.http.locations import LocationConverter
from portal.web.http.unchanged import Unchanged
from portal.web.pages.admin import views as admin
from portal.web.pages.jobs import words
from portal.web.pages.sessions import warnings

STATIC = Path(__file__).parent / "static"
MAX_BODY = 1 << 20
"""Bytes; the largest legitimate request is a launch or the tail of a log."""
UNCHANGED_POLLS = "unchanged polls"
"""Stands for the route of polls that are answered before routing, in metrics."""


def create_app(services: Services) -> Flask:
    """Create the portal's application, and the gate that serves the apps' origins."""
    portal = _portal(services)
    origins = gate.build(services, _templates(services), STATIC, MAX_BODY)
    portal.extensions["slipway_gate"] = origins
    by_host = security.HostDispatcher(services.settings.web, portal.wsgi_app, origins.wsgi_app)
    # HAProxy is the only proxy in front of us, and it removes these headers from client requests.
    proxied = ProxyFix(by_host, x_for=1, x_proto=1, x_host=0)
    polled = Unchanged(
        proxied,
        str(portal.secret_key),
        services.change_numbers,
        lambda: services.clock().timestamp(),
        caller.HEADER,
        lambda took: services.monitoring.note_request("GET", UNCHANGED_POLLS, 204, took),
    )
    # Flask documents this assignment for middleware; to mypy, wsgi_app is a method.
    portal.wsgi_app = BodyTimeout(Delivery(polled))  # type: ignore[method-assign]
    return portal


def _templates(services: Services) -> str:
    return str(Path(services.settings.sessions.templates) / "html")


def _portal(services: Services) -> Flask:
    app = Flask("portal", template_folder=_templates(services), static_folder=str(STATIC))
    app.json = StrictJson(app)
    app.url_map.converters["location"] = LocationConverter
    secure = services.settings.web.secure
    app.config.update(
        SECRET_KEY=Path(services.settings.state.directory, "secret_key").read_text().strip(),
        SESSION_COOKIE_NAME="__Host-slipway" if secure else "slipway",
        SESSION_COOKIE_SECURE=secure,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        MAX_CONTENT_LENGTH=MAX_BODY,
        MAX_FORM_MEMORY_SIZE=MAX_BODY,
        MAX_FORM_PARTS=MAX_FIELDS,
        # A page may stay open as long as its login; the token expires with the session cookie.
        WTF_CSRF_TIME_LIMIT=None,
        SEND_FILE_MAX_AGE_DEFAULT=timedelta(days=365),
    )
    app.request_class = BoundedRequest
    app.session_interface = SessionCookie()
    app.extensions[EXTENSION] = services
    observed.install(app)
    context.install(app)
    caller.install(app)
    errors.install(app)
    install_filters(app)
    warnings.install(app)
    words.install(app)
    settings = services.settings
    app.jinja_env.globals.update(
        site=settings.web,
        second_factor=settings.login.second_factor,
        oidc=settings.oidc,
        hub_url=settings.hub.url,
        version=release(),
        own_registries=bool(services.registry_logins.registries),
        file_roots=tuple(settings.files.roots),
        share_checks_names=settings.files.check_names,
    )
    branding.install(app, services.settings.web)
    security.install(app, services.settings.web)
    browser.install(app)
    for part in (provider, pages, admin, runner, monitoring, data):
        app.register_blueprint(part.blueprint)
    for blueprint in openapi.BLUEPRINTS:
        app.register_blueprint(blueprint)
    security.csrf.init_app(app)
    return app

"""Security headers, protection of forms, and dispatch by host name."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from flask import Flask, Response, request
from flask.typing import ResponseReturnValue
from flask_login import current_user
from flask_wtf import CSRFProtect
from werkzeug.exceptions import BadRequest, Forbidden
from werkzeug.wrappers import Response as PlainResponse

from portal.config import WebSettings
from portal.web.auth.browser import require_login
from portal.web.errors import PROGRAMS
from portal.web.http.wsgi_types import Environ, StartResponse, Wsgi

csrf = CSRFProtect()

FOR_STRANGERS = frozenset(
    {
        "auth.login",
        "auth.login_again",
        "auth.login_kept",
        "pages.stop_mail",
        "provider.back_channel",
    }
)
"""Endpoints of forms that may be sent without a login."""

FRONTEND = "HTTP_X_SLIPWAY_FRONTEND"
"""Set by HAProxy's frontends for call-backs and monitoring, and removed from browsers' requests."""
FOR_RUNNERS, FOR_MONITORING = "runners", "monitoring"
WATCHED = ("/livez", "/readyz", "/healthz", "/metrics")
"""Paths for monitoring, served under any host name."""
WITHOUT_TOKEN = (
    "portal.web.auth.browser.login_kept",
    "portal.web.auth.provider.back_channel",
    "portal.web.pages.account.notifications.stop_mail",
)
"""Views that need no CSRF token: the first changes nothing, and a login has made its page's token
invalid; the second is called by the OpenID provider, with a signed token, the third by mail
programs, with a signed address."""


class HostDispatcher:
    """Dispatches each request to the portal or, at an app's origin, to the gate."""

    def __init__(self, web: WebSettings, portal: Wsgi, apps: Wsgi) -> None:
        self._web = web
        self._portal = portal
        self._apps = apps

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request."""
        # There are no WebSocket routes; with this header the router would reject the request
        # before a view can respond "not ready yet".
        environ.pop("HTTP_UPGRADE", None)
        return self._choose(environ)(environ, start_response)

    def _choose(self, environ: Environ) -> Wsgi:
        host = str(environ.get("HTTP_HOST", ""))
        path, frontend = str(environ.get("PATH_INFO", "")), environ.get(FRONTEND)
        if frontend is not None:
            fits = path in WATCHED if frontend == FOR_MONITORING else path.startswith("/runner/")
            return self._portal if fits else PlainResponse("Not found", 404)
        if self._web.origins.label_at(host) is not None:
            return self._apps
        if host.partition(":")[0].lower() == self._web.host.lower():
            return self._portal
        return PlainResponse("The portal does not answer under this name.", 421)


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, as in browsers' Origin header."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def install(app: Flask, web: WebSettings) -> None:
    """Install the checks of forms, and the security headers of every response."""
    app.config["WTF_CSRF_SSL_STRICT"] = False  # browsers may send no referrer; origins are checked
    for view in WITHOUT_TOKEN:
        csrf.exempt(view)
    own_origin = origin_of(web.public_url)
    apps = " ".join(web.origins.patterns())  # any subdomain, any port of the pool
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
        # Opening an app is a form whose response redirects to the app's origin.
        f"form-action 'self' {apps}"
    )

    @app.before_request
    def refuse_foreign_forms() -> None:
        # Apps are same-site with the portal, so SameSite cookies alone do not stop their forms.
        unsafe = request.method not in ("GET", "HEAD", "OPTIONS")
        if unsafe and not _is_from(own_origin):
            raise Forbidden("This request came from another site.")

    @app.before_request
    def check_before_reading_forms() -> ResponseReturnValue | None:
        # Runs before the CSRF check, which would read the form of an anonymous client.
        if not unsafe_page():
            return None
        if request.endpoint not in FOR_STRANGERS and not current_user.is_authenticated:
            return require_login()
        # No browser sends one, and the CSRF check fails on it.
        if None in request.form:
            raise BadRequest("A field of this form has no name.")
        return None

    @app.after_request
    def headers(response: Response) -> Response:
        harden(response, policy)
        # Not for localhost: browsers would apply it to everything else that runs there.
        if web.secure and not web.host.endswith("localhost"):
            response.headers["Strict-Transport-Security"] = "max-age=31536000"
        return response


def _is_from(own_origin: str) -> bool:
    """Whether a page of this origin has sent the request, or a program without an Origin header.

    Browsers that are configured to send no referrer send the origin "null" with forms; then
    Sec-Fetch-Site tells.
    """
    origin = request.headers.get("Origin", own_origin)
    return origin == own_origin or (
        origin == "null" and request.headers.get("Sec-Fetch-Site") == "same-origin"
    )


def unsafe_page() -> bool:
    """Whether the request submits a form of one of our pages."""
    is_page = request.endpoint is not None and not request.path.startswith(PROGRAMS)
    return is_page and request.method not in ("GET", "HEAD", "OPTIONS")


def harden(response: Response, policy: str) -> None:
    """Set the security headers of a response."""
    response.headers.setdefault("Content-Security-Policy", policy)
    response.headers.setdefault("Referrer-Policy", "same-origin")
    response.headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["X-Frame-Options"] = "DENY"
    if request.endpoint != "static":
        response.headers.setdefault("Cache-Control", "no-store")

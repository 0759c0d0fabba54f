"""Requests below /data/ for which HAProxy has no route to the user's file server.

Browsers with a login are admitted, and redirected to the same URL. HAProxy holds the requests of
programs, and those whose file server does not answer, while it asks whether to go on, and passes
any other answer on (templates/haproxy/files.lua).
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue
from flask_login import current_user

from portal.core.auth.logins import TOKEN
from portal.core.auth.person import Person, hash_secret
from portal.core.files.server import READ, WRITE
from portal.errors import Forbidden, Starting, Unauthorized
from portal.web.auth.bearer import bearer
from portal.web.auth.browser import require_login
from portal.web.context import person, services
from portal.web.errors import on_portal_error
from portal.web.http.paths import here, redirect_to
from portal.web.security import csrf

blueprint = Blueprint("data", __name__, url_prefix="/data")
csrf.exempt(blueprint)

METHODS = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"]
METHODS += ["PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK"]
SAFE = ("GET", "HEAD", "OPTIONS", "PROPFIND")
HELD = "X-Slipway-Files"
"""Set by HAProxy on requests that it holds: the hash of their cookie or token. On the answer:
"started" if HAProxy shall go on, "starting" if it shall ask again."""


@blueprint.route("/", methods=METHODS, provide_automatic_options=False)
@blueprint.route("/<location:path>", methods=METHODS, provide_automatic_options=False)
def enter(path: str = "") -> ResponseReturnValue:  # noqa: ARG001
    """Admit a browser or program to its user's file server."""
    try:
        if "Authorization" in request.headers:
            return _admit_program()
        if secret_hash := request.headers.get(HELD):
            services().file_servers.restart(secret_hash)
            return _started()
    except Starting as error:
        response = on_portal_error(error)
        response.headers[HELD] = "starting"
        return response
    refusal = require_login()
    if refusal is not None:
        if request.method == "GET" and request.headers.get("Sec-Fetch-Mode", "") == "navigate":
            return refusal
        raise Unauthorized("Please log in.")
    response = _again()
    admit_browser(person(), response)
    return response


@blueprint.after_request
def challenge(response: Response) -> Response:
    """Tell programs that know only names and passwords that they may send these (RFC 7617)."""
    if response.status_code == 401 and _takes_passwords():
        response.headers["WWW-Authenticate"] = 'Basic realm="Slipway", charset="UTF-8"'
        response.headers.add("WWW-Authenticate", "Bearer")
    return response


def _takes_passwords() -> bool:
    """Whether a token is accepted as the password of Basic authentication.

    Not from browsers, which would send it by themselves from then on, also for other sites' pages.
    """
    headers = request.headers
    encrypted = request.is_secure or _is_loopback(request.remote_addr)
    return encrypted and "Origin" not in headers and "Sec-Fetch-Site" not in headers


def _again() -> Response:
    # The path as it was sent: decoding and encoding might change it.
    target = here()
    response = redirect_to(target if target.startswith("/data/") else "/files", 307)
    response.headers["Cache-Control"] = "no-store"
    return response


def _is_loopback(address: str | None) -> bool:
    return address is not None and ip_address(address).is_loopback


def _token() -> str:
    """The token of the request, which may be the password of Basic authentication."""
    given = request.authorization
    if given is None or given.type != "basic":
        return bearer()
    if not _takes_passwords():
        raise Forbidden("A token is accepted as password over https only, and not from browsers.")
    return given.password or ""


def _admit_program() -> Response:
    secret = _token()
    login = services().logins.find(secret, TOKEN)
    if login is None:
        raise Unauthorized("This token is unknown, has expired or was revoked.")
    writes = login.allows("files:write")
    if not writes and not login.allows("files:read"):
        raise Forbidden("This token was created without the scope “files:read”.")
    if not writes and request.method not in SAFE:
        raise Forbidden("This token was created without the scope “files:write”.")
    services().logins.keep_alive(login)
    services().file_servers.admit(
        services().logins.person(login), login.hash, WRITE if writes else READ
    )
    return _started()


def _started() -> Response:
    response = Response()
    response.headers[HELD] = "started"
    return response


def cookie_name() -> str:
    """The cookie by which HAProxy routes a browser to its user's file server."""
    return "__Host-slipway-files" if services().settings.web.secure else "slipway-files"


def admit_browser(user: Person, response: Response) -> None:
    """Let this browser reach its user's file server; raises Unavailable."""
    servers, name = services().file_servers, cookie_name()
    cookie = (request.cookies.getlist(name) or [""])[-1]  # HAProxy takes the last one, too
    if cookie and servers.is_admitted(user, hash_secret(cookie)):
        servers.ensure(user)
        return
    # The same secret for all requests of a login, so that each login has a single route.
    secret = hmac.digest(current_user.get_id().encode(), b"files", "sha256").hex()
    servers.admit(user, hash_secret(secret), WRITE)
    response.set_cookie(
        name,
        secret,
        secure=services().settings.web.secure,
        httponly=True,
        samesite="Strict",
        path="/",
    )

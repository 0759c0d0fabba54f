"""Log-in by OpenID Connect: redirects to the provider, its call-back, and log-outs."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace

from flask import (
    Blueprint,
    Response,
    current_app,
    flash,
    make_response,
    redirect,
    render_template,
    request,
)
from flask.typing import ResponseReturnValue
from flask_login import current_user
from itsdangerous import BadData, URLSafeTimedSerializer
from pydantic import TypeAdapter, ValidationError

from portal.core.auth.logins import Login, Proof
from portal.core.auth.oidc import ATTEMPT_SECONDS, AuthorizationResponse, LoginAttempt
from portal.errors import Forbidden, NotFound, PortalError, Unauthorized
from portal.services.auth.provider_logins import USED, ProviderLogins
from portal.web.auth.browser import LOGGED_OUT, open_login, refusal_page
from portal.web.context import services
from portal.web.http.paths import local_path, redirect_to

blueprint = Blueprint("provider", __name__)

PATH = "/login/oidc"
DONE = "/login/done"
"""The final page of a log-in in a separate window; the page that opened it notices."""
MOST_ATTEMPTS = 4
"""Pending log-ins of a browser; older ones are dropped, since each has a cookie."""
MAX_CODE = 3500
MAX_COOKIE = 4000
"""Browsers drop a cookie whose name and value are longer than 4096 bytes, silently."""
_ATTEMPT = TypeAdapter(LoginAttempt)


def provider_logins() -> ProviderLogins:
    """The log-in by OpenID Connect; raises NotFound if it is not configured."""
    logins = services().provider_logins
    if logins is None:
        raise NotFound("This site has no log-in by OpenID Connect.")
    return logins


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(
        str(current_app.secret_key), salt="oidc", signer_kwargs={"digest_method": hashlib.sha256}
    )


def _prefix() -> str:
    secure = services().settings.web.secure
    return ("__Host-" if secure else "") + "slipway-oidc-"


def _cookie_of(state: str) -> str:
    return _prefix() + hashlib.sha256(state.encode()).hexdigest()[:16]


@blueprint.get(PATH)
def start() -> ResponseReturnValue:
    """Send the browser to the provider, with a cookie that only this log-in needs."""
    logins, target = provider_logins(), local_path(request.args.get("next")) or ""
    if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
        return redirect("/login", 303)  # other sites must not start a log-in
    if current_user.is_authenticated:
        return redirect_to(target or "/sessions")
    try:
        url, attempt = logins.begin(target)
    except PortalError as error:
        return refusal_page(error)
    response = make_response(redirect(url, 303))
    _drop_old(response)
    cookie = _serializer().dumps(asdict(attempt))
    if len(cookie) > MAX_COOKIE:
        cookie = _serializer().dumps(asdict(replace(attempt, target="")))
    response.set_cookie(
        _cookie_of(attempt.state),
        cookie,
        max_age=ATTEMPT_SECONDS,
        path="/",  # as the prefix __Host- demands
        secure=services().settings.web.secure,
        httponly=True,
        samesite="Lax",  # the provider's redirect is a navigation from another site
    )
    return response


def _drop_old(response: Response) -> None:
    """Keep only the newest pending log-ins: cookies must not fill the request's headers."""
    pending = []
    for name, value in request.cookies.items():
        if name.startswith(_prefix()):
            attempt = _read(value)
            pending.append((attempt.started if attempt else 0, name))
    for _started, name in sorted(pending)[: max(0, len(pending) - MOST_ATTEMPTS + 1)]:
        _forget(response, name)


def _forget(response: Response, name: str) -> None:
    secure = services().settings.web.secure
    response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="Lax")


def _read(value: str) -> LoginAttempt | None:
    try:
        # The signature's time is by the system's clock; the attempt's time is checked later.
        data = _serializer().loads(value)
        return _ATTEMPT.validate_python(data)
    except (BadData, ValidationError):
        return None


@blueprint.get(f"{PATH}/callback")
def callback() -> ResponseReturnValue:
    """Check the provider's response, and log in."""
    logins = provider_logins()
    if request.headers.get("Sec-Fetch-Dest", "document") != "document":
        raise Unauthorized(USED)  # not a frame, image or script of another page
    authorization = _answer()
    name = _cookie_of(authorization.state)
    attempt = _read(request.cookies.get(name, ""))
    attempts = services().login_attempts
    try:
        if attempt is None:
            raise Unauthorized(USED)  # not an attempt: the provider is not asked
        attempts.check_provider()
        user, proof = logins.finish(attempt, authorization)
    except PortalError as error:
        if attempt and isinstance(error, (Unauthorized, Forbidden)):
            attempts.refused_by_provider()
        target = local_path(attempt.target) if attempt else None
        response = refusal_page(error, target=target or "")
    else:
        attempts.remember(user)
        if not _is_same(user, proof):
            open_login(user, proof)
        response = redirect_to(local_path(attempt.target) or "/sessions")
    _forget(response, name)
    return response


def _is_same(user: str, proof: Proof) -> bool:
    """Whether another tab has logged in meanwhile; its login, with open apps, is kept."""
    if not current_user.is_authenticated:
        return False
    login: Login = current_user.login
    facts = (proof.method, proof.issuer, proof.subject, proof.sid, proof.admin)
    return login.user == user and facts == (
        login.method,
        login.issuer,
        login.subject,
        login.sid,
        login.admin,
    )


def _answer() -> AuthorizationResponse:
    """The provider's parameters, each at most once; raises Unauthorized."""
    parameters = {}
    for field, name in (
        ("state", "state"),
        ("code", "code"),
        ("issuer", "iss"),
        ("error", "error"),
    ):
        values = request.args.getlist(name)
        if len(values) > 1 or any(len(value) > MAX_CODE for value in values):
            raise Unauthorized(USED)
        parameters[field] = values[0] if values else ""
    return AuthorizationResponse(**parameters)


@blueprint.get(DONE)
def done() -> ResponseReturnValue:
    """The final page of a log-in in a separate window."""
    if not current_user.is_authenticated:
        return redirect("/login", 303)
    return render_template("login_done.html", name=current_user.person.name)


@blueprint.get(f"{PATH}/logged-out")
def logged_out() -> ResponseReturnValue:
    """The page after logging out at the provider."""
    provider_logins()
    flash(LOGGED_OUT)
    return redirect("/login", 303)


@blueprint.post(f"{PATH}/back-channel")
def back_channel() -> ResponseReturnValue:
    """End a session for the provider (OpenID Connect Back-Channel Logout 1.0)."""
    headers = {"Cache-Control": "no-store"}
    try:
        provider_logins().end_session(request.form.get("logout_token", ""))
    except Unauthorized:
        return {"error": "invalid_request"}, 400, headers
    return "", 200, headers

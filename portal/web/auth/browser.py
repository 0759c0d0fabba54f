"""Browsers: Flask-Login over server-side logins, and the login page."""

from __future__ import annotations

from flask import Blueprint, Flask, make_response, redirect, render_template, request, session
from flask.typing import ResponseReturnValue
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user

from portal.core.auth.logins import BROWSER, Login
from portal.core.auth.person import Person
from portal.errors import Unauthorized, Unavailable
from portal.web.auth.login_session import check_password
from portal.web.context import person, services, set_person
from portal.web.http.paths import here, local_path, next_query

blueprint = Blueprint("auth", __name__)
manager = LoginManager()

UNATTENDED = frozenset({"pages.rows", "pages.log_text", "pages.outcome", "pages.apps_now"})
"""Endpoints that an unattended tab polls, which must not keep a login alive."""


class BrowserUser(UserMixin):  # type: ignore[misc]
    """Flask-Login's user: the secret in the cookie, and the login that it belongs to."""

    def __init__(self, secret: str, login: Login) -> None:
        self._secret = secret
        self.login = login
        self.person: Person = services().logins.person(login)

    def get_id(self) -> str:
        """The secret, which Flask-Login stores in the cookie."""
        return self._secret


def install(app: Flask) -> None:
    """Add logins to the application."""
    # Client addresses and user agents change during the day; only the secret counts.
    manager.session_protection = None
    manager.init_app(app)
    app.register_blueprint(blueprint)


@manager.user_loader  # type: ignore[untyped-decorator]
def _load(secret: str) -> BrowserUser | None:
    login = services().logins.find(secret, BROWSER)
    return None if login is None else BrowserUser(secret, login)


def require_login() -> ResponseReturnValue | None:
    """Require a login; a guard for the blueprints of pages.

    Returns None for a user who is logged in, else the response that leads to the login page.
    """
    if current_user.is_authenticated:
        set_person(current_user.person)
        if request.endpoint not in UNATTENDED:
            services().logins.keep_alive(current_user.login)
        return None
    if "HX-Request" in request.headers:  # the login page must not be swapped into a fragment
        return "", 401, {"HX-Redirect": "/login"}
    if request.method != "GET":
        return redirect("/login", 303)
    return redirect(f"/login?{next_query(here())}", 303)


@blueprint.get("/login")
def login_form() -> ResponseReturnValue:
    """Show the login page."""
    target = local_path(request.args.get("next"))
    if current_user.is_authenticated:
        return redirect(target or "/sessions", 303)
    return _form(200)


def _form(status: int, name: str = "", problem: str = "") -> ResponseReturnValue:
    target = local_path(request.values.get("next")) or ""
    page = render_template("login.html", name=name, problem=problem, target=target)
    return make_response(page, status)


@blueprint.post("/login")
def login() -> ResponseReturnValue:
    """Check the password; every login gets a new secret."""
    name = request.form.get("username", "").strip()
    try:
        user = check_password(name, request.form.get("password", ""))
    except (Unauthorized, Unavailable) as error:
        return _form(error.status, name, error.text)
    _log_out_previous()
    session.clear()  # nothing planted before the login may survive it
    secret, entry = services().logins.open_browser(user)
    login_user(BrowserUser(secret, entry))
    return redirect(local_path(request.form.get("next")) or "/sessions", 303)


def _log_out_previous() -> None:
    if current_user.is_authenticated:
        services().logins.log_out(current_user.person)


@blueprint.post("/logout")
def logout() -> ResponseReturnValue:
    """End the login on the server, and revoke its access to apps."""
    refusal = require_login()
    if refusal is not None:
        return refusal
    who = person()
    # First, so that this browser is logged out even if app access cannot be revoked right now.
    logout_user()
    session.clear()
    services().logins.log_out(who)
    return redirect("/login", 303)

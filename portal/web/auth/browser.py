"""Browsers: Flask-Login over server-side logins, and the login page."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Annotated

from flask import (
    Blueprint,
    Flask,
    Response,
    flash,
    make_response,
    redirect,
    render_template,
    request,
    session,
)
from flask.typing import ResponseReturnValue
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user
from flask_wtf.csrf import ValidationError, generate_csrf, validate_csrf
from pydantic import Field, TypeAdapter
from pydantic import ValidationError as PydanticError

from portal.core.auth.logins import BROWSER, BY_PASSWORD, Login, Proof
from portal.core.auth.person import Person
from portal.errors import Forbidden, PortalError, TooManyLogins, Unauthorized, Unavailable
from portal.web.auth.login_session import check_password
from portal.web.context import person, services, set_person
from portal.web.errors import RETRIED
from portal.web.http.paths import here, local_path, next_query, redirect_to
from portal.web.http.unchanged import VISIBLE

blueprint = Blueprint("auth", __name__)
manager = LoginManager()

UNATTENDED = frozenset(
    {
        "pages.rows",
        "pages.session_now",
        "pages.log_text",
        "pages.outcome",
        "pages.apps_now",
        "pages.job_rows",
        "pages.job_now",
        "pages.job_usage",
        "pages.job_output_text",
        "pages.folder_sizes",
        "pages.file_operations",
    }
)
"""Endpoints that an unattended tab polls, which must not keep a login alive. Polls of a visible
page are noted apart: its owner's sessions report their use more often."""


_WIZARD, _COMPOSER = "wizard", "composer"
PRESERVED_FORMS = MappingProxyType(
    dict.fromkeys(
        ("pages.launch", "pages.choose_again", "pages.review", "pages.make_folder", "pages.keep"),
        _WIZARD,
    )
    | dict.fromkeys(
        (
            "pages.submit_job",
            "pages.check_job",
            "pages.job_command",
            "pages.read_script",
            "pages.compose_again",
            "pages.keep_template",
        ),
        _COMPOSER,
    )
)
"""The long form that each endpoint receives; its fields are preserved over a login."""
FORM_PAGES = MappingProxyType(
    {_WIZARD: "/sessions/new?step=environment", _COMPOSER: "/jobs/new/again"}
)
"""The path that shows each form with its preserved fields."""
OWNER = "who"
"""Form field with the name of the user who filled the form in."""
_KEPT_TEXT = "You are logged out. Log in: what you entered is kept."
_PAIRS = TypeAdapter(Annotated[list[tuple[str, str]], Field(max_length=1000)])

LOGGED_OUT = "You are logged out."
_REFUSALS = (Unauthorized, Forbidden, TooManyLogins, Unavailable)
"""Errors of a log-in that its page shows."""


class BrowserUser(UserMixin):  # type: ignore[misc]
    """Flask-Login's user: the secret in the cookie, and its login."""

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
        elif VISIBLE in request.headers:
            services().logins.note_visible(current_user.login)
        return None
    if "HX-Request" in request.headers:  # the login page must not be swapped into a fragment
        return "", 401, {"HX-Redirect": "/login"}
    if request.endpoint in PRESERVED_FORMS and _from_our_page():
        return login_page(401, request.form.get(OWNER, ""), _KEPT_TEXT, _sent_fields())
    if request.method != "GET":
        return redirect("/login", 303)
    return redirect(f"/login?{next_query(here())}", 303)


def _sent_fields() -> tuple[str, str]:
    """The name of the form that was sent, and its fields as JSON."""
    pairs = [pair for pair in request.form.items(True) if pair[0] != "csrf_token"]
    return PRESERVED_FORMS[request.endpoint or ""], json.dumps(pairs, ensure_ascii=False)


def _from_our_page() -> bool:
    # Reads the form without a login, as the login page itself does.
    try:
        validate_csrf(request.form.get("csrf_token"))
    except ValidationError:
        return False
    return None not in request.form


@blueprint.get("/login")
def login_form() -> ResponseReturnValue:
    """Show the login page."""
    target = local_path(request.args.get("next"))
    if current_user.is_authenticated:
        return redirect_to(target or "/sessions")
    return login_page(200)


def login_page(
    status: int,
    name: str = "",
    problem: str = "",
    sent: tuple[str, str] | None = None,
    target: str = "",
) -> Response:
    """The login page; it preserves a path and the fields of a form over the login."""
    target = target or local_path(request.values.get("next")) or ""
    form, fields = sent or (request.form.get("kept_form", ""), request.form.get("kept", ""))
    page = render_template(
        "login.html", name=name, problem=problem, target=target, kept=fields, kept_form=form
    )
    return make_response(page, status)


@blueprint.post("/login")
def login() -> ResponseReturnValue:
    """Check the password; every login gets a new secret."""
    name = request.form.get("username", "").strip()
    try:
        user = _check(name)
    except _REFUSALS as error:
        return refusal_page(error, name)
    open_login(user)
    return _restored_page(user) or redirect_to(local_path(request.form.get("next")) or "/sessions")


@blueprint.post("/login/kept")
def login_kept() -> ResponseReturnValue:
    """Restore the fields of a form that the login page held while another window logged in."""
    if not current_user.is_authenticated:
        owner = dict(preserved_fields(request.form.get("kept", ""))).get(OWNER, "")
        return login_page(401, owner, _KEPT_TEXT)
    return _restored_page(current_user.person.name) or redirect("/sessions", 303)


def _restored_page(user: str) -> Response | None:
    """The page with the preserved fields; None if there are none of this user's."""
    fields = preserved_fields(request.form.get("kept", ""))
    if not fields or (OWNER, user) not in fields:
        return None
    path = FORM_PAGES.get(request.form.get("kept_form", ""), FORM_PAGES[_WIZARD])
    return make_response(render_template("login_kept.html", fields=fields, path=path))


def refusal_page(error: PortalError, name: str = "", target: str = "") -> Response:
    """The login page with the reason of a refusal."""
    page = login_page(error.status, name, error.text, target=target)
    page.headers.update(_pause(error))
    return page


def _pause(error: PortalError) -> dict[str, str]:
    return {"Retry-After": str(error.retry_seconds)} if error.status in RETRIED else {}


def _check(name: str) -> str:
    form = request.form
    return check_password(name, form.get("password", ""), form.get("code", ""))


def open_login(user: str, proof: Proof = BY_PASSWORD) -> None:
    """Log this browser in with a new secret; ends its previous login."""
    _log_out_previous()
    session.clear()  # nothing planted before the login may survive it
    secret, entry = services().logins.open_browser(user, proof)
    login_user(BrowserUser(secret, entry))


def preserved_fields(text: str) -> list[tuple[str, str]]:
    """Parse the fields of a form that were sent with the login; [] if missing or invalid."""
    try:
        return [(name, value) for name, value in _PAIRS.validate_json(text)]
    except PydanticError:
        return []


@blueprint.get("/login/state")
def login_state() -> ResponseReturnValue:
    """The user and a CSRF token, for pages whose login has expired or changed."""
    user = current_user.person.name if current_user.is_authenticated else ""
    return {"user": user, "csrf_token": generate_csrf()}


@blueprint.post("/login/again")
def login_again() -> ResponseReturnValue:
    """Log in again from a page whose login has expired, without leaving it."""
    try:
        user = _check(request.form.get("username", ""))
    except _REFUSALS as error:
        return {"problem": error.text}, error.status, _pause(error)
    open_login(user)
    return {"user": user, "csrf_token": generate_csrf()}


def _log_out_previous() -> None:
    if current_user.is_authenticated:
        services().logins.log_out(current_user.person)


@blueprint.post("/logout")
def logout() -> ResponseReturnValue:
    """End the login on the server, and revoke its access to apps."""
    refusal = require_login()
    if refusal is not None:
        return refusal
    caller, login_entry = person(), current_user.login
    # First, so that this browser is logged out even if app access cannot be revoked right now.
    logout_user()
    session.clear()
    services().logins.log_out(caller)
    provider = services().provider_logins
    if provider is not None and (url := provider.logout_url(login_entry)):
        # Not a redirect: the pages' form-action policy permits none to another site.
        return make_response(render_template("logged_out.html", url=url))
    flash(LOGGED_OUT)
    return redirect("/login", 303)

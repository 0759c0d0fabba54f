"""The account page: the user's logins and API tokens, and their revocation."""

from __future__ import annotations

from flask import Response, flash, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.auth.logins import BROWSER, SCOPES, TOKEN, Login
from portal.errors import FieldError, InvalidRequest
from portal.web.auth.browser import LOGGED_OUT
from portal.web.context import person, services
from portal.web.pages.account.tokens import TokenPage, back_to_page
from portal.web.pages.blueprint import blueprint

SCOPE_TEXTS = {
    "read": "See sessions, logs and settings",
    "write": "Launch, change and end sessions, and enter their apps",
    "files:read": "See and download files",
    "files:write": "Upload, change and delete files",
    "admin": "Do what administrators may do",
}
"""The permissions of each scope of a token, in words."""
_DEFAULT = {"name": "", "days": "30"}


@blueprint.get("/account")
def account() -> ResponseReturnValue:
    """The page."""
    values = _DEFAULT | {"days": str(min(30, services().settings.web.login_terms.token_days))}
    return _page(values, ("read",))


def _page(
    values: dict[str, str],
    chosen: tuple[str, ...],
    problems: tuple[FieldError, ...] = (),
    created: tuple[str, Login] | None = None,
) -> Response:
    logins, user = services().logins, person()
    page = render_template(
        "account.html",
        person=user,
        browsers=logins.logins_of(user.name, BROWSER),
        tokens=TokenPage.of_request(logins.logins_of(user.name, TOKEN)),
        last_day=logins.last_day,
        says={scope: SCOPE_TEXTS[scope] for scope in logins.scopes_for(user)},
        terms=services().settings.web.login_terms,
        values=values,
        chosen=chosen,
        errors={problem.field: problem.message for problem in problems},
        created=created,
    )
    # The page contains the secret of a token that was just created.
    return make_response(page, 422 if problems else 200, {"Cache-Control": "no-store"})


@blueprint.post("/account/tokens")
def make_token() -> ResponseReturnValue:
    """Create a token; only the page in this response shows its secret."""
    values = {name: request.form.get(name, "").strip() for name in _DEFAULT}
    chosen = tuple(scope for scope in SCOPES if scope in request.form.getlist("scopes"))
    try:
        created = services().logins.make_token(
            person(), values["name"], chosen, _number(values["days"])
        )
    except InvalidRequest as error:
        return _page(values, chosen, error.errors)
    return _page(_DEFAULT, ("read",), created=created)


def _number(text: str) -> int:
    # 0 is out of range, so that the error states the range.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


@blueprint.post("/account/revoke/<login_id>")
def revoke(login_id: str) -> ResponseReturnValue:
    """Revoke one token, or log one browser out."""
    services().logins.revoke_login(person().name, login_id, person().name)
    flash("Revoked, together with its access to apps.")
    return back_to_page("/account")


@blueprint.post("/account/revoke-tokens")
def revoke_tokens() -> ResponseReturnValue:
    """Revoke all tokens."""
    services().logins.revoke_all(person().name, person().name, (TOKEN,))
    flash("All of your tokens are revoked.")
    return redirect("/account", 303)


@blueprint.post("/account/log-out-everywhere")
def log_out_everywhere() -> ResponseReturnValue:
    """Log all browsers out, including this one, and revoke their access to apps."""
    services().logins.revoke_all(person().name, person().name, (BROWSER,))
    flash(LOGGED_OUT)
    return redirect("/login", 303)

"""The page with the user's logins for registries; passwords are never shown again."""

from __future__ import annotations

from collections.abc import Mapping

from flask import flash, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.launch.registry_login import MAX_PASSWORD, RegistryLogin
from portal.core.validation import validated
from portal.errors import FieldError, InvalidRequest, NotFound
from portal.web.context import person, services
from portal.web.numbers import trim
from portal.web.pages.blueprint import blueprint

_SHOWN = 255
"""Characters; longer values are always rejected, so they are not sent back."""
_PLACE = "/account/registries"


@blueprint.get("/account/registries")
def registry_logins() -> ResponseReturnValue:
    """The page; `?registry=HOST` fills in the form, for links from a refused launch."""
    return _page({"registry": trim(request.args.get("registry", ""))})


def _page(values: Mapping[str, str], problems: tuple[FieldError, ...] = ()) -> ResponseReturnValue:
    logins = services().registry_logins
    permitted = logins.registries
    page = render_template(
        "registries.html",
        person=person(),
        logins=logins.list(person()),
        permitted=[host for host in permitted if host != "*"],
        every="*" in permitted,
        insecure=services().settings.images.insecure,
        values={name: text if len(text) <= _SHOWN else "" for name, text in values.items()},
        errors={problem.field: problem.message for problem in reversed(problems)},
        most=MAX_PASSWORD,
    )
    return make_response(page, 422 if problems else 200, {"Cache-Control": "no-store"})


@blueprint.post("/account/registries")
def save_registry_login() -> ResponseReturnValue:
    """Save a login; replaces the previous one for the same registry."""
    values = {name: trim(request.form.get(name, "")) for name in ("registry", "user")}
    secret = request.form.get("password", "")
    try:
        data = {"user": values["user"], "password": secret}
        login = validated(lambda: RegistryLogin.model_validate(data))
        _, new = services().registry_logins.save(person(), values["registry"], login)
    except InvalidRequest as error:
        return _page(values, error.errors)
    result = "is saved" if new else "replaces the one that you had saved"
    flash(f"The login for {values['registry']} {result}.")
    return redirect(_PLACE, 303)


@blueprint.post("/account/registries/forget")
def forget_registry_login() -> ResponseReturnValue:
    """Delete a login. Idempotent."""
    registry = request.form.get("registry", "")
    try:
        services().registry_logins.remove(person(), registry)
    except NotFound:
        flash("There was no such login any more.")
    else:
        flash(f"The login for {registry} is deleted. Images that it pulled stay in your cache.")
    return redirect(_PLACE, 303)

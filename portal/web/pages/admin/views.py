"""The administrators' pages: templates, images, limits and audit log; 404 for other users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, flash, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from portal.core.admin.audit import (
    MAX_EXPORT,
    WORDS,
    AuditEvent,
    AuditFilter,
    csv_lines,
    day_bounds,
    read_cursor,
)
from portal.core.admin.caps import CapsRequest
from portal.core.admin.descriptions import say_rule
from portal.core.admin.etag import etag
from portal.core.admin.images import ImageRequest
from portal.core.admin.templates import parse_template
from portal.core.validation import check
from portal.errors import FieldError, InvalidRequest, PortalError
from portal.node.common.fgpu import GpuKind
from portal.web.auth.browser import require_login
from portal.web.context import cluster_view, person, services
from portal.web.numbers import trim
from portal.web.pages.admin import forms
from portal.web.pages.admin.forms import AdminForm
from portal.web.pages.admin.members import fair_shares

blueprint = Blueprint("admin", __name__, url_prefix="/admin")

LIMITS = 20
"""Entries of each kind on the page of limits."""
LINES = 100
"""Lines of the audit log on one page."""
_DIRECTIONS = {"up": -1, "down": 1}
FILTERS = ("who", "action", "text", "day")


@blueprint.before_request
def guard() -> ResponseReturnValue | None:
    """Require an administrator who is logged in."""
    refusal = require_login()
    if refusal is None:
        services().administration.admit(person())
    return refusal


def _page(page: str, part: str, status: int = 200, /, **values: Any) -> Response:
    html = render_template(page, part=part, person=person(), **values)
    return make_response(html, status)


def _saved(text: str, path: str) -> ResponseReturnValue:
    flash(text)
    return redirect(path, 303)


@blueprint.get("")
def start() -> ResponseReturnValue:
    """Redirect to the first page."""
    return redirect("/admin/templates", 303)


# Templates


@blueprint.get("/templates")
def templates() -> ResponseReturnValue:
    """The resource templates, in order."""
    resource_templates = services().administration.templates()
    return _page(
        "admin_templates.html",
        "templates",
        templates=resource_templates,
        gpus=_kinds() or any(t.fgpu for t in resource_templates),
    )


@blueprint.get("/templates/new")
def new_template() -> ResponseReturnValue:
    """An empty form."""
    return _template_page(AdminForm(forms.template_values(None)))


@blueprint.get("/templates/<name>/edit")
def edit_template(name: str) -> ResponseReturnValue:
    """A template in its form."""
    template = services().administration.template(person(), name)
    return _template_page(AdminForm(forms.template_values(template), etag(template)), name)


def _template_page(form: AdminForm, name: str | None = None, status: int = 200) -> Response:
    groups = [partition.name for partition in cluster_view().partitions]
    option_names = services().administration.option_names()
    values = {
        "form": form,
        "name": name,
        "groups": groups,
        "kinds": _kinds(),
        "option_names": option_names,
    }
    return _page("admin_template.html", "templates", status, **values)


def _kinds() -> tuple[GpuKind, ...]:
    return services().gpus.kinds


@blueprint.post("/templates")
def make_template() -> ResponseReturnValue:
    """Create a template."""
    return _save_template(None, "")


@blueprint.post("/templates/<name>")
def change_template(name: str) -> ResponseReturnValue:
    """Change a template, unless another administrator has changed it since."""
    return _save_template(name, request.form.get("seen", ""))


def _save_template(name: str | None, if_match: str) -> ResponseReturnValue:
    values = _entered(forms.TEMPLATE_FIELDS) | ({"name": name} if name else {})
    try:
        chosen = trim(values["name"])
        body = parse_template(chosen, forms.template_request(values))
        saved = services().administration.save_template(person(), chosen, body, if_match)
    except PortalError as error:
        return _template_page(forms.rejected(values, if_match, error), name, error.status)
    return _saved(f"Saved “{saved.title}”.", "/admin/templates")


@blueprint.get("/templates/<name>/delete")
def ask_drop_template(name: str) -> ResponseReturnValue:
    """The confirmation page without JavaScript; scripts show a dialog instead."""
    template = services().administration.template(person(), name)
    return _page("admin_delete.html", "templates", template=template, etag=etag(template))


@blueprint.post("/templates/<name>/delete")
def drop_template(name: str) -> ResponseReturnValue:
    """Delete a template."""
    if_match = request.form.get("seen")
    template = services().administration.drop_template(person(), name, if_match)
    return _saved(f"Deleted “{template.title}”.", "/admin/templates")


@blueprint.post("/templates/<name>/move")
def move_template(name: str) -> ResponseReturnValue:
    """Move a template up or down."""
    by = _DIRECTIONS.get(request.form.get("to", ""))
    if by is None:
        raise InvalidRequest([FieldError("to", "choose up or down")])
    services().administration.move_template(person(), name, by)
    return redirect(f"/admin/templates#t-{name}", 303)  # keeps the keyboard focus


# Images


@blueprint.get("/images")
def images() -> ResponseReturnValue:
    """All images with their visibility."""
    pairs = services().administration.rules_of(person(), services().catalog())
    return _page("admin_images.html", "images", images=pairs)


@blueprint.get("/images/<environment>/<version>")
def image(environment: str, version: str) -> ResponseReturnValue:
    """The form that sets who can see an image."""
    catalog = services().catalog()
    _, rule = services().administration.image_rule(person(), catalog, environment, version)
    form = AdminForm(forms.image_values(rule), etag(rule))
    return _image_page(form, environment, version)


def _image_page(form: AdminForm, environment: str, version: str, status: int = 200) -> Response:
    administration, catalog = services().administration, services().catalog()
    image, _ = administration.image_rule(person(), catalog, environment, version)
    accounts, users = administration.principals(person())
    return _page(
        "admin_image.html",
        "images",
        status,
        form=form,
        image=image,
        accounts=accounts,
        users=users,
    )


@blueprint.post("/images/<environment>/<version>")
def show_image(environment: str, version: str) -> ResponseReturnValue:
    """Set who can see an image."""
    values, if_match = _entered(("seen_by", "accounts", "users")), request.form.get("seen", "")
    administration, catalog = services().administration, services().catalog()
    image, _ = administration.image_rule(person(), catalog, environment, version)
    try:
        body = check(ImageRequest, forms.image_request(values))
        rule = administration.save_image_rule(
            person(), catalog, environment, version, body, if_match
        )
    except PortalError as error:
        form = forms.rejected(values, if_match, error)
        return _image_page(form, environment, version, error.status)
    title = image.title if version in image.title else f"{image.title} {version}"
    return _saved(f"Saved: {say_rule(title, rule)}.", "/admin/images")


# Limits and caps


@blueprint.get("/limits")
def limits() -> ResponseReturnValue:
    """Slurm's limits with their commands, and the caps."""
    rules = services().administration.site_rules()
    return _limits_page(AdminForm(forms.caps_values(rules), etag(rules)))


def _limits_page(form: AdminForm, status: int = 200) -> Response:
    report, name = services().administration.limits(person()), request.args.get("name", "").strip()
    report = report.named(name) if report else None
    seconds = services().settings.slurm.limits_seconds
    values: dict[str, Any] = {
        "form": form,
        "report": report,
        "name": name[:200],
        "most": LIMITS,
        "seconds": seconds,
        "kinds": _kinds(),
        "accounts": [
            use
            for use in cluster_view().account_use("", everybody=True)
            if name.casefold() in use.account.casefold()
        ],
        "fair_shares": fair_shares(cluster_view().limits),
    }
    return _page("admin_limits.html", "limits", status, **values)


@blueprint.post("/caps")
def save_caps() -> ResponseReturnValue:
    """Replace the caps."""
    values, if_match = _entered(forms.CAPS_FIELDS), request.form.get("seen", "")
    try:
        body = check(CapsRequest, forms.caps_request(values))
        services().administration.save_rules(person(), body, if_match)
    except PortalError as error:
        return _limits_page(forms.rejected(values, if_match, error), error.status)
    return _saved("Saved the rules.", "/admin/limits")


# The audit log


@blueprint.get("/journal")
def journal() -> ResponseReturnValue:
    """The audit log, newest first."""
    filters = {name: request.args.get(name, "").strip() for name in FILTERS}
    entries: list[AuditEvent] = []
    following, problem, status = None, "", 200
    try:
        before = read_cursor(request.args.get("cursor"))
        entries, following = services().administration.events(
            person(), _filter(filters), LINES, before
        )
    except InvalidRequest as error:
        problem, status = error.text, error.status
    next_page = {name: value for name, value in filters.items() if value} | {"cursor": following}
    return _page(
        "admin_journal.html",
        "journal",
        status,
        entries=entries,
        filters=filters,
        words=WORDS,
        problem=problem,
        export=urlencode({name: value for name, value in filters.items() if value}),
        most=MAX_EXPORT,
        older=urlencode(next_page) if following else "",
        first="cursor" not in request.args,
    )


@blueprint.get("/journal.csv")
def journal_file() -> ResponseReturnValue:
    """The entries that match the filters as a CSV file, newest first; streamed, bounded."""
    filters = {name: request.args.get(name, "").strip() for name in FILTERS}
    entries = services().administration.export(person(), _filter(filters))
    response = Response(csv_lines(entries), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = 'attachment; filename="journal.csv"'
    return response


def _filter(filters: Mapping[str, str]) -> AuditFilter:
    since, until = day_bounds(filters["day"]) if filters["day"] else (None, None)
    plain = {name: filters[name] or None for name in ("who", "action", "text")}
    return check(AuditFilter, {**plain, "since": since, "until": until})


def _entered(names: tuple[str, ...]) -> dict[str, str]:
    return {name: request.form.get(name, "") for name in names}

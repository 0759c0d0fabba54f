"""What administrators decide, and the journal; for everybody else there is nothing here.

A GET answers with an ETag; a change that sends it back as If-Match is refused (409) when somebody
else was faster. Without If-Match the last one wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from flask import Response, jsonify, request
from flask.typing import ResponseReturnValue
from pydantic import BaseModel

from portal.core.admin.administration import (
    CapsRequest,
    ImageRequest,
    ImageRule,
    TemplateRequest,
    etag,
)
from portal.core.admin.audit import AuditQuery, read_cursor
from portal.core.apps.catalog import Image
from portal.core.cluster.limit_report import Limited
from portal.core.launch.templates import Template
from portal.errors import Unavailable
from portal.web.api import guarded
from portal.web.body import read_model, read_nothing, read_query
from portal.web.context import person, services

blueprint = guarded("admin")


@blueprint.before_request
def guard() -> None:
    """Before anything is read or checked, so that no answer tells others what is here."""
    services().administration.admit(person())


def _marked(body: dict[str, Any], value: BaseModel, status: int = 200) -> Response:
    response = jsonify(body)
    response.status_code = status
    response.set_etag(etag(value))
    return response


def _seen() -> str | None:
    """What the caller has seen; None when they do not say."""
    sent = request.headers.get("If-Match")
    return None if sent in (None, "*") else sent.strip().strip('"')


# Templates


@blueprint.get("/admin/templates/<name>")
def template(name: str) -> ResponseReturnValue:
    """One template."""
    found = services().administration.template(person(), name)
    return _marked(_template(found), found)


@blueprint.put("/admin/templates/<name>")
def save_template(name: str) -> ResponseReturnValue:
    """Make or replace a template."""
    asked = read_model(TemplateRequest)
    saved = services().administration.save_template(person(), name, asked, _seen())
    return _marked(_template(saved), saved)


@blueprint.delete("/admin/templates/<name>")
def drop_template(name: str) -> ResponseReturnValue:
    """Delete a template."""
    read_nothing()
    services().administration.drop_template(person(), name, _seen())
    return "", 204


def _template(template: Template) -> dict[str, Any]:
    return {"name": template.name} | TemplateRequest.of(template).model_dump(mode="json")


# Images


@blueprint.get("/admin/images")
def images() -> ResponseReturnValue:
    """All images, and who sees each."""
    found = services().administration.rules_of(person(), services().catalog())
    return {"images": [_image(image, rule) for image, rule in found]}


@blueprint.get("/admin/images/<environment>/<version>")
def image(environment: str, version: str) -> ResponseReturnValue:
    """Who sees one image."""
    catalog = services().catalog()
    found, rule = services().administration.image_rule(person(), catalog, environment, version)
    return _marked(_image(found, rule), rule)


@blueprint.put("/admin/images/<environment>/<version>")
def show_image(environment: str, version: str) -> ResponseReturnValue:
    """Decide who sees an image."""
    asked = read_model(ImageRequest)
    administration, catalog = services().administration, services().catalog()
    rule = administration.save_image_rule(person(), catalog, environment, version, asked, _seen())
    found, _ = administration.image_rule(person(), catalog, environment, version)
    return _marked(_image(found, rule), rule)


def _image(image: Image, rule: ImageRule) -> dict[str, Any]:
    return rule.model_dump(mode="json") | {"title": image.title}


# Caps and limits


@blueprint.get("/admin/caps")
def caps() -> ResponseReturnValue:
    """What nobody may exceed, where Slurm has no word for it."""
    rules = services().administration.site_rules()
    return _marked(CapsRequest.of(rules).model_dump(mode="json"), rules)


@blueprint.put("/admin/caps")
def save_caps() -> ResponseReturnValue:
    """Replace the caps; null, or leaving one out, takes it away."""
    rules = services().administration.save_rules(person(), read_model(CapsRequest), _seen())
    return _marked(CapsRequest.of(rules).model_dump(mode="json"), rules)


@blueprint.get("/admin/limits")
def limits() -> ResponseReturnValue:
    """Slurm's limits in plain words, each with the command that changes it."""
    found = services().administration.limits(person())
    if found is None:
        raise Unavailable("Slurm's limits have not been read yet. Try again in a minute.")
    return {
        "applied": found.applied,
        "resource_groups": _limited(found.groups),
        "qos": _limited(found.qos),
        "accounts": _limited(found.accounts),
        "users": _limited(found.users),
    }


def _limited(found: Sequence[Limited]) -> list[dict[str, Any]]:
    return [asdict(item) for item in found]


# The journal


@blueprint.get("/journal")
def journal() -> ResponseReturnValue:
    """Who did what, newest first."""
    query = read_query(AuditQuery)
    before = read_cursor(query.cursor)
    found, following = services().administration.events(person(), query, query.limit, before)
    return {
        "entries": [entry.model_dump(mode="json") for entry in found],
        "next_cursor": None if following is None else str(following),
    }

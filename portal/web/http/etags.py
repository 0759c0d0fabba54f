"""Entity tags of the administrators' resources in responses and requests."""

from __future__ import annotations

from flask import request
from pydantic import BaseModel

from portal.core.admin.etag import etag
from portal.web.api.operation import Model, Reply


def tagged(body: Model, value: BaseModel | None) -> Reply[Model]:
    """A response with the ETag of the value in it."""
    return Reply(body, headers={"ETag": f'"{etag(value)}"'})


def expected() -> str | None:
    """The ETag in If-Match; None without one, or for "*"."""
    sent = request.headers.get("If-Match")
    return None if sent in (None, "*") else sent.strip().strip('"')

"""Turns every error into a response: a page for browsers, a problem document for programs."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from flask import Flask, Response, make_response, render_template, request
from flask_wtf.csrf import CSRFError
from pydantic import BaseModel, ConfigDict
from werkzeug.exceptions import HTTPException, NotFound

from portal.errors import DatabaseUnavailable, FieldError, InvalidRequest, PortalError, Starting
from portal.web.observed import reference

log = logging.getLogger(__name__)

RETRY_SECONDS = "15"
RETRIED = (425, 429, 503)
"""Statuses after which trying again may help."""
PROGRAMS = ("/api/", "/runner/", "/data/")

_TEXTS = {
    404: ("Not found", "There is nothing here, or it is not yours."),
    405: ("Not possible", "This address does not accept that kind of request."),
    413: ("Too large", "The request is larger than the portal accepts."),
    421: ("Wrong address", "The portal does not answer under this name."),
    429: ("Too many attempts", "Wait a minute, then try again."),
}


class ProblemField(BaseModel):
    """An invalid field, and the reason."""

    field: str
    message: str


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str
    title: str
    status: int
    detail: str
    code: str = ""
    """The kind of error for programs, where the status does not determine it."""
    errors: list[ProblemField] = []
    more_errors: int = 0
    """The number of invalid fields beyond those listed."""
    reference: str = ""
    """The id of the request in the portal's log; only for errors of the server."""


def install(app: Flask) -> None:
    """Register the error handlers, and reject paths that no view could look up."""

    @app.before_request
    def reject_nul_in_path() -> None:
        # No name contains NUL, which databases cannot store; some fail on such a query.
        if "\0" in request.path:
            raise NotFound

    app.register_error_handler(PortalError, on_portal_error)
    app.register_error_handler(CSRFError, _on_stale_form)
    app.register_error_handler(HTTPException, _on_http_error)
    app.register_error_handler(Exception, _on_unexpected_error)


def on_portal_error(error: PortalError) -> Response:
    """Respond with the error's own status and text."""
    invalid = error if isinstance(error, InvalidRequest) else None
    errors, unlisted = (invalid.errors, invalid.more) if invalid else ((), 0)
    response = error_response(error.status, error.title, error.text, errors, unlisted, error.code)
    if error.status in RETRIED:
        response.headers["Retry-After"] = str(error.retry_seconds)
    if isinstance(error, Starting) and request.method == "GET":
        response.headers["Refresh"] = str(error.retry_seconds)  # browsers reload the page
    return response


def _on_stale_form(_error: CSRFError) -> Response:
    text = "This page was open too long or was loaded before you logged in. Load it again."
    return error_response(400, "Please try again", text)


def _on_http_error(error: HTTPException) -> Response:
    status = error.code or 500
    if error.response is not None and status < 400:  # a redirect that a router raised
        return make_response(error.get_response())
    title, text = _TEXTS.get(status, (error.name, error.description or error.name))
    response = error_response(status, title, text)
    for name, value in error.get_headers():
        if name.lower() in ("allow", "retry-after"):
            response.headers[name] = value
    return response


def _on_unexpected_error(error: Exception) -> Response:
    # Without the query, which may contain a ticket.
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    text = "It has been written to the portal's log. Trying again may help."
    return error_response(500, "Something went wrong on our side", text)


def error_response(
    status: int,
    title: str,
    text: str,
    errors: Sequence[FieldError] = (),
    more_errors: int = 0,
    code: str = "",
) -> Response:
    """Build the response in the format that the client expects."""
    if request.path.startswith(PROGRAMS):
        response = problem(status, title, text, errors, more_errors, code)
    else:
        response = make_response(_error_page(status, title, text), status)
    if status in RETRIED:
        response.headers["Retry-After"] = RETRY_SECONDS
    return response


def _error_page(status: int, title: str, text: str) -> Response:
    quoted = reference() if status >= 500 else ""
    try:
        return make_response(
            render_template("error.html", status=status, title=title, text=text, reference=quoted)
        )
    except DatabaseUnavailable:  # every page says who is logged in
        return Response(f"{title}\n\n{text}\n", mimetype="text/plain")


def problem(
    status: int,
    title: str,
    text: str,
    errors: Sequence[FieldError] = (),
    more_errors: int = 0,
    code: str = "",
) -> Response:
    """Build a problem document (RFC 9457); `more_errors`: invalid fields not in `errors`."""
    fields = [ProblemField(field=e.field, message=e.message) for e in errors]
    body = Problem(
        type="about:blank",
        title=title,
        status=status,
        detail=text,
        code=code,
        errors=fields,
        more_errors=more_errors,
        reference=reference() if status >= 500 else "",
    ).model_dump(exclude_defaults=True)
    response = Response(json.dumps(body), status, content_type="application/problem+json")
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response

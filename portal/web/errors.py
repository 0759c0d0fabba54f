"""Every error becomes one answer here: a page for people, a problem document for programs."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from flask import Flask, Response, make_response, render_template, request
from flask_wtf.csrf import CSRFError
from pydantic import BaseModel, ConfigDict
from werkzeug.exceptions import HTTPException, NotFound

from portal.errors import FieldError, InvalidRequest, PortalError

log = logging.getLogger(__name__)

RETRY_SECONDS = "15"
PROGRAMS = ("/api/", "/runner/")

_TEXTS = {
    404: ("Not found", "There is nothing here, or it is not yours."),
    405: ("Not possible", "This address does not take that kind of request."),
    413: ("Too large", "The request is larger than anything the portal takes."),
    421: ("Wrong address", "The portal does not answer under this name."),
    429: ("Too many attempts", "Wait a minute, then try again."),
}


class ProblemField(BaseModel):
    """A field that is wrong, and why."""

    field: str
    message: str


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str
    title: str
    status: int
    detail: str
    errors: list[ProblemField] = []
    more_errors: int = 0
    """How many wrong fields there are beyond those listed."""


def install(app: Flask) -> None:
    """Catch everything that views raise, and what no view could look for."""

    @app.before_request
    def refuse_unwritable_paths() -> None:
        # Databases store no NUL, so nothing has it in its name; some fail when they are asked.
        if "\0" in request.path:
            raise NotFound

    app.register_error_handler(PortalError, on_portal_error)
    app.register_error_handler(CSRFError, _on_stale_form)
    app.register_error_handler(HTTPException, _on_http_error)
    app.register_error_handler(Exception, _on_surprise)


def on_portal_error(error: PortalError) -> Response:
    """Answer with the error's own status and words."""
    errors, more = (error.errors, error.more) if isinstance(error, InvalidRequest) else ((), 0)
    return answer(error.status, error.title, error.text, errors, more)


def _on_stale_form(_error: CSRFError) -> Response:
    text = "This page was open too long or was loaded before you logged in. Load it again."
    return answer(400, "Please try again", text)


def _on_http_error(error: HTTPException) -> Response:
    status = error.code or 500
    if error.response is not None and status < 400:  # a redirect that a router raised
        return make_response(error.get_response())
    title, text = _TEXTS.get(status, (error.name, error.description or error.name))
    response = answer(status, title, text)
    for name, value in error.get_headers():
        if name.lower() in ("allow", "retry-after"):
            response.headers[name] = value
    return response


def _on_surprise(error: Exception) -> Response:
    # The address without its query: tickets travel there.
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    text = "It has been written to the portal's log. Trying again may help."
    return answer(500, "Something went wrong on our side", text)


def answer(
    status: int, title: str, text: str, errors: Sequence[FieldError] = (), more: int = 0
) -> Response:
    """Build the answer in the form that the caller understands."""
    if request.path.startswith(PROGRAMS):
        response = problem(status, title, text, errors, more)
    else:
        page = render_template("error.html", status=status, title=title, text=text)
        response = make_response(page, status)
    if status == 503:
        response.headers["Retry-After"] = RETRY_SECONDS
    return response


def problem(
    status: int, title: str, text: str, errors: Sequence[FieldError] = (), more: int = 0
) -> Response:
    """Build a problem document (RFC 9457); `more` wrong fields are not among `errors`."""
    wrong = [ProblemField(field=e.field, message=e.message) for e in errors]
    body = Problem(
        type="about:blank",
        title=title,
        status=status,
        detail=text,
        errors=wrong,
        more_errors=more,
    ).model_dump(exclude_defaults=True)
    response = Response(json.dumps(body), status, content_type="application/problem+json")
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response

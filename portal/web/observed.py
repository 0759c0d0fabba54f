"""Request ids, access log and metrics."""

from __future__ import annotations

import logging
import re
import time
import uuid
from urllib.parse import quote

from flask import Flask, Response, g, request

from portal.logs import context as log_context
from portal.logs.format import FIELDS
from portal.logs.setup import ACCESS
from portal.web.context import services

access = logging.getLogger(ACCESS)

FROM_HAPROXY = "X-Slipway-Request"
"""Header with the id that HAProxy gives each request; it removes those of clients."""
_ID = re.compile(r"[0-9a-f-]{8,64}")
_SESSION = re.compile(r"[0-9a-f]{8,64}")
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_LONGEST = 200
"""Characters of a path in the log."""
UNKNOWN = "(none)"
"""The route in the metrics for requests that match none."""
_PROBES = frozenset(
    (
        "monitoring.livez",
        "monitoring.readyz",
        "monitoring.metrics",
        "pages.healthz",
        "runner.usage",
    )
)
"""Endpoints that programs poll every few seconds."""
_USUAL = (200, 503)
"""Statuses of probes that are not logged."""


def install(app: Flask) -> None:
    """Observe the requests of an application; call it before other handlers are added."""

    @app.before_request
    def begin() -> None:
        g.started = time.monotonic()
        request_id = request.headers.get(FROM_HAPROXY, "")
        g.reference = request_id if _ID.fullmatch(request_id) else str(uuid.uuid4())
        session = str((request.view_args or {}).get("session_id", ""))
        log_context.begin(g.reference, session if _SESSION.fullmatch(session) else "")

    @app.after_request
    def end(response: Response) -> Response:
        seconds = time.monotonic() - g.get("started", time.monotonic())
        # Templates, never paths, so that the number of series is bounded.
        route = request.url_rule.rule if request.url_rule else UNKNOWN
        method = request.method if request.method in _METHODS else "other"
        services().monitoring.note_request(method, route, response.status_code, seconds)
        if request.endpoint not in _PROBES or response.status_code not in _USUAL:
            _log(response.status_code, seconds)
        return response


def _log(status: int, seconds: float) -> None:
    # Without the query, which may contain a ticket; quoted, since a path may contain line breaks.
    path = quote(request.path[:_LONGEST])
    ms = round(seconds * 1000)
    fields = {
        "method": request.method[:16],
        "path": path,
        "status": status,
        "ms": ms,
        "address": request.remote_addr or "",
    }
    line = f"{fields['method']} {path} {status} {ms} ms from {fields['address'] or '-'}"
    access.info(line, extra={FIELDS: fields})


def reference() -> str:
    """The id of the current request: users quote it, and administrators search the log for it."""
    return str(g.get("reference", ""))

"""Monitoring: /livez, /readyz and /metrics.

Readiness is public. Details and metrics are served only on the listener of `monitoring.listen`,
where HAProxy admits the networks of `monitoring.allow`: behind another proxy on the same host,
every client of the public address would look like a loopback address.
"""

from __future__ import annotations

from collections.abc import Sequence

from flask import Blueprint, jsonify, make_response, request
from flask.typing import ResponseReturnValue

from portal.core.monitoring import Part, summary
from portal.errors import FieldError, InvalidRequest, NotFound
from portal.web.context import services
from portal.web.security import FOR_MONITORING, FRONTEND

blueprint = Blueprint("monitoring", __name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus' text format."""
_PLAIN = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}


def inside() -> bool:
    """Whether the request came by the listener for monitoring."""
    return request.environ.get(FRONTEND) == FOR_MONITORING


@blueprint.get("/livez")
def livez() -> ResponseReturnValue:
    """Confirm that this process responds."""
    return "ok\n", _PLAIN


@blueprint.get("/readyz")
def readyz() -> ResponseReturnValue:
    """Check all parts that users need: 200, or 503 with the names of the failed ones.

    One or more `?part=` restrict the check to these; raises InvalidRequest.
    """
    parts = _select(services().monitoring.parts(), request.args.getlist("part"))
    ready = all(part.ok for part in parts)
    status = 200 if ready else 503
    if not (inside() and "verbose" in request.args):
        return f"{summary(parts)}\n", status, _PLAIN
    report = {part.name: {"ok": part.ok, "text": part.text} for part in parts}
    response = make_response(jsonify({"ready": ready, "parts": report}), status)
    response.headers["Cache-Control"] = "no-store"
    return response


def _select(parts: Sequence[Part], names: Sequence[str]) -> list[Part]:
    available = {part.name for part in parts}
    if unknown := [name for name in names if name not in available]:
        text = f"{unknown[0][:40]!r} is none of {', '.join(sorted(available))}"
        raise InvalidRequest([FieldError("part", text)])
    return [part for part in parts if not names or part.name in names]


@blueprint.get("/metrics")
def metrics() -> ResponseReturnValue:
    """All metrics in Prometheus' text format; raises NotFound on other listeners."""
    if not inside():
        raise NotFound("There is nothing here, or it is not yours.")
    text = services().monitoring.exposition()
    return text, {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}

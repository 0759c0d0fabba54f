"""For programs that watch the portal: /livez, /readyz and /metrics.

Everybody may ask whether it is ready. What is wrong, and all figures, are told only on the listener
of `monitoring.listen`, where HAProxy admits the networks of `monitoring.allow`: behind another
proxy on the same host every client of the public address would look like a loopback address.
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
    """Confirm that this process answers."""
    return "ok\n", _PLAIN


@blueprint.get("/readyz")
def readyz() -> ResponseReturnValue:
    """Whether everything works that users need: 200, or 503 with the names of what does not.

    With `?part=` once or more only these are asked for; raises InvalidRequest.
    """
    parts = _chosen(services().monitoring.parts(), request.args.getlist("part"))
    ready = all(part.ok for part in parts)
    status = 200 if ready else 503
    if not (inside() and "verbose" in request.args):
        return f"{summary(parts)}\n", status, _PLAIN
    told = {part.name: {"ok": part.ok, "text": part.text} for part in parts}
    answer = make_response(jsonify({"ready": ready, "parts": told}), status)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _chosen(parts: Sequence[Part], names: Sequence[str]) -> list[Part]:
    known = {part.name for part in parts}
    if unknown := [name for name in names if name not in known]:
        text = f"{unknown[0][:40]!r} is none of {', '.join(sorted(known))}"
        raise InvalidRequest([FieldError("part", text)])
    return [part for part in parts if not names or part.name in names]


@blueprint.get("/metrics")
def metrics() -> ResponseReturnValue:
    """Everything that is counted and measured, for Prometheus; raises NotFound elsewhere."""
    if not inside():
        raise NotFound("There is nothing here, or it is not yours.")
    text = services().monitoring.exposition()
    return text, {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}

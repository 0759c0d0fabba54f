"""The answers of the API, as OpenAPI describes them."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
MAYBE_TEXT = {"type": ["string", "null"]}
MAYBE_NUMBER = {"type": ["integer", "null"]}
MAYBE_TIME = {"type": ["string", "null"], "format": "date-time"}
YES_NO = {"type": "boolean"}


def _object(properties: dict[str, Any], nullable: bool = False) -> dict[str, Any]:
    kind = ["object", "null"] if nullable else "object"
    return {"type": kind, "properties": properties}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_STATES = ["PENDING", "STARTING", "RUNNING", "ENDING", "FINISHED", "FAILED", "UNKNOWN"]

_REASON = _object(
    {
        "code": TEXT,
        "text": TEXT,
        "advice": TEXT,
        "ahead": MAYBE_NUMBER,
        "estimated_start": MAYBE_TIME,
    },
    nullable=True,
)
_END = _object({"cause": TEXT, "text": TEXT, "exit_code": MAYBE_NUMBER}, nullable=True)
_USAGE = _object(
    {
        "cpu_percent": {"type": ["number", "null"], "description": "percent of one core"},
        "memory": {"type": ["integer", "null"], "description": "bytes"},
        "oom_kills": NUMBER,
    },
    nullable=True,
)

SCHEMAS: dict[str, dict[str, Any]] = {
    "Session": _object(
        {
            "id": TEXT,
            "name": TEXT,
            "owner": TEXT,
            "environment": TEXT,
            "version": TEXT,
            "resources": _object({"cpus": NUMBER, "memory": TEXT, "shared_memory": TEXT}),
            "env": _list(TEXT),
            "resource_group": MAYBE_TEXT,
            "time_limit": {"type": ["integer", "null"], "description": "minutes"},
            "state": TEXT | {"enum": _STATES},
            "unknown_since": MAYBE_TIME,
            "reason": _REASON,
            "end": _END,
            "usage": _USAGE,
            "job_id": MAYBE_TEXT,
            "node": MAYBE_TEXT,
            "created": MAYBE_TIME,
            "started": MAYBE_TIME,
            "ended": MAYBE_TIME,
            "apps": _list(_object({"name": TEXT, "title": TEXT, "state": MAYBE_TEXT})),
        }
    ),
    "Environment": _object(
        {
            "name": TEXT,
            "versions": _list(
                _object(
                    {
                        "version": TEXT,
                        "title": TEXT,
                        "description": TEXT,
                        "default_app": MAYBE_TEXT,
                        "apps": _list(_object({"name": TEXT, "title": TEXT})),
                    }
                )
            ),
        }
    ),
    "ResourceGroup": _object(
        {
            "name": TEXT,
            "default": YES_NO,
            "open": YES_NO,
            "max_cpus": NUMBER,
            "max_memory": TEXT,
            "max_time_limit": MAYBE_NUMBER,
            "max_running": MAYBE_NUMBER,
            "bounded_by": _object({"cpus": TEXT, "memory": TEXT, "time": TEXT}),
        }
    ),
    "Usage": _object(
        {
            "resource_group": TEXT,
            "cpus": _object({"mine": NUMBER, "allowed": MAYBE_NUMBER, "available": MAYBE_NUMBER}),
            "memory": _object({"mine": TEXT, "allowed": MAYBE_TEXT, "available": MAYBE_TEXT}),
        }
    ),
    "Me": _object({"name": TEXT, "admin": YES_NO}),
    "Token": _object({"token": TEXT, "scopes": _list(TEXT), "expires": MAYBE_TIME}),
    "Log": _object({"log": TEXT, "offset": NUMBER, "next_offset": NUMBER}),
    "OpenApp": _object({"url": TEXT, "port": NUMBER, "public": YES_NO, "state": TEXT}),
    "Preset": _object(
        {
            "name": TEXT,
            "saved": MAYBE_TIME,
            "launch": {
                "type": "object",
                "description": "a LaunchRequest, with only the names of its variables",
            },
        }
    ),
    "Problem": _object(
        {
            "type": TEXT,
            "title": TEXT,
            "status": NUMBER,
            "detail": TEXT,
            "errors": _list(_object({"field": TEXT, "message": TEXT})),
        }
    ),
}

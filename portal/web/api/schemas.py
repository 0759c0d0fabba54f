"""The answers of the API, as OpenAPI describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portal.core.apps.access import AppState
from portal.core.auth.logins import SCOPES
from portal.core.session.session import Cause

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
AMOUNT = {"type": "number"}
MAYBE_AMOUNT = {"type": ["number", "null"]}
MAYBE_TEXT = {"type": ["string", "null"]}
MAYBE_NUMBER = {"type": ["integer", "null"]}
MAYBE_TIME = {"type": ["string", "null"], "format": "date-time"}
YES_NO = {"type": "boolean"}


def _object(
    properties: dict[str, Any], nullable: bool = False, optional: Sequence[str] = ()
) -> dict[str, Any]:
    kind = ["object", "null"] if nullable else "object"
    required = [name for name in properties if name not in optional]
    return {"type": kind, "properties": properties, "required": required}


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
_END = _object(
    {
        "cause": TEXT | {"enum": [cause.value for cause in Cause]},
        "text": TEXT,
        "exit_code": MAYBE_NUMBER,
        "log": TEXT
        | {"description": "last lines of its log, where something went wrong; not in lists"},
    },
    nullable=True,
    optional=["log"],
)
_LOG_READ = _object({"at": MAYBE_TIME, "by": TEXT}, nullable=True) | {
    "description": "when an administrator last read its log, and who that was"
}
_USAGE = _object(
    {
        "cpu_percent": {"type": ["number", "null"], "description": "percent of one core"},
        "memory": {"type": ["integer", "null"], "description": "bytes"},
        "oom_kills": NUMBER,
        "gpu_memory": {"type": ["integer", "null"], "description": "bytes"},
        "gpu_percent": {"type": ["number", "null"], "description": "percent of the whole GPU"},
        "gpu_kills": NUMBER | {"description": "processes ended for too much of the GPU's memory"},
    },
    nullable=True,
)
_TIME = TEXT | {"format": "date-time"}
_TOKEN: dict[str, Any] = {
    "id": TEXT,
    "name": TEXT,
    "scopes": _list(TEXT | {"enum": list(SCOPES)}),
    "created": _TIME,
    "last_used": _TIME | {"description": "to the minute"},
    "expires": _TIME,
    "address": TEXT | {"description": "where it was made from"},
    "current": YES_NO | {"description": "whether this request came with it"},
}
_PERCENT = NUMBER | {"description": "share of a GPU's multiprocessors"}
_SLICE: dict[str, Any] = {"kind": TEXT, "title": TEXT, "memory": TEXT, "sm_percent": _PERCENT}
_GPU = _object(_SLICE, nullable=True)
_GPU_GRANT = _object(
    {
        "asked": AMOUNT,
        "fgpu": AMOUNT,
        "rounded": YES_NO | {"description": "whether it is more than was asked for"},
        **_SLICE,
    },
    nullable=True,
)
_GPU_OFFER = _object(
    {
        "kind": TEXT | {"description": "for gpu_kind; empty where GPUs have none"},
        "title": TEXT,
        "max_fgpu": AMOUNT,
        "bounded_by": TEXT,
        "amounts": _list(_object({"fgpu": AMOUNT, "memory": TEXT, "sm_percent": _PERCENT})),
    }
)
_TEMPLATE_RESOURCES = _object(
    {
        "cpus": NUMBER,
        "memory": TEXT,
        "shared_memory": MAYBE_TEXT,
        "fgpu": MAYBE_AMOUNT,
        "gpu_kind": MAYBE_TEXT,
    }
)

_LIMIT = _object({"what": TEXT, "value": TEXT, "command": TEXT, "set": YES_NO})
_LIMITED = _list(_object({"name": TEXT, "about": TEXT, "limits": _list(_LIMIT)}))

SCHEMAS: dict[str, dict[str, Any]] = {
    "Session": _object(
        {
            "id": TEXT,
            "name": TEXT,
            "owner": TEXT,
            "environment": TEXT,
            "version": TEXT,
            "resources": _object(
                {
                    "cpus": NUMBER,
                    "memory": TEXT,
                    "shared_memory": TEXT,
                    "fgpu": MAYBE_AMOUNT | {"description": "what was granted"},
                    "gpu": _GPU,
                }
            ),
            "mounts": _list(_object({"folder": TEXT, "read_only": YES_NO, "path": TEXT})),
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
            "deadline": MAYBE_TIME | {"description": "when its time is up"},
            "last_used": MAYBE_TIME | {"description": "by a person or a computation"},
            "log_read": _LOG_READ,
            "idle_deadline": MAYBE_TIME | {"description": "when it ends unless it is used"},
            "ended": MAYBE_TIME,
            "restarts": NUMBER | {"description": "how often Slurm has started it anew"},
            "requeued": MAYBE_TIME,
            "apps": _list(
                _object(
                    {
                        "name": TEXT,
                        "title": TEXT,
                        "state": MAYBE_TEXT,
                        "message": TEXT | {"description": "why it failed"},
                        "log": TEXT | {"description": "its last lines, when it failed"},
                        "url": MAYBE_TEXT
                        | {"description": "its address once it was opened; it lets nobody in"},
                        "public": YES_NO
                        | {"description": "whether everybody who knows the address may use it"},
                        "public_since": MAYBE_TIME,
                        "still_open": YES_NO
                        | {"description": "a way was taken away that is not shut yet"},
                    }
                )
            ),
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
                        "seen_by": TEXT | {"description": "for administrators only"},
                        "apps": _list(_object({"name": TEXT, "title": TEXT})),
                    },
                    optional=["seen_by"],
                )
            ),
        }
    ),
    "Folder": _object({"name": TEXT, "path": TEXT, "mountable": YES_NO}),
    "OfferedTemplate": _object(
        {
            "name": TEXT,
            "title": TEXT,
            "description": TEXT,
            "resources": _TEMPLATE_RESOURCES,
            "time_limit": MAYBE_NUMBER | {"description": "minutes"},
            "resource_group": MAYBE_TEXT,
            "fits": YES_NO | {"description": "whether one's limits allow it"},
            "why": TEXT | {"description": "why it does not fit"},
        }
    ),
    "Estimate": _object(
        {
            "estimated_start": MAYBE_TIME,
            "reason": TEXT | {"description": "why there is no estimate"},
            "free": _object({"cpus": MAYBE_NUMBER, "memory": MAYBE_TEXT, "fgpu": MAYBE_AMOUNT}),
            "gpu": _GPU_GRANT,
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
            "max_shared_memory": MAYBE_TEXT | {"description": "the administrators' cap"},
            "bounded_by": _object({"cpus": TEXT, "memory": TEXT, "time": TEXT}),
            "gpus": _list(_GPU_OFFER),
        }
    ),
    "Usage": _object(
        {
            "resource_group": TEXT,
            "cpus": _object({"mine": NUMBER, "allowed": MAYBE_NUMBER, "available": MAYBE_NUMBER}),
            "memory": _object({"mine": TEXT, "allowed": MAYBE_TEXT, "available": MAYBE_TEXT}),
            "fgpu": _object(
                {"mine": AMOUNT, "allowed": MAYBE_AMOUNT, "available": MAYBE_AMOUNT}, nullable=True
            ),
        }
    ),
    "Me": _object({"name": TEXT, "admin": YES_NO}),
    "SshDoor": _object(
        {
            "state": TEXT | {"enum": ["closed", *(state.value for state in AppState)]},
            "host": TEXT,
            "port": MAYBE_NUMBER,
            "user": TEXT,
            "host_key": MAYBE_TEXT | {"description": "kind and key, as known_hosts has them"},
            "fingerprint": MAYBE_TEXT,
            "host_key_alias": TEXT | {"description": "for ssh -o HostKeyAlias="},
        }
    ),
    "SshKey": _object({"name": TEXT, "private_key": TEXT}),
    "NewToken": _object({"token": TEXT | {"description": "shown this once"}, **_TOKEN}),
    "Token": _object(_TOKEN),
    "Login": _object({"kind": TEXT | {"enum": ["browser", "token"]}, **_TOKEN}),
    "Presence": _object({"name": TEXT, "browsers": NUMBER, "tokens": NUMBER, "last_used": _TIME}),
    "Log": _object({"log": TEXT, "offset": NUMBER, "next_offset": NUMBER}),
    "OpenApp": _object(
        {
            "url": TEXT | {"description": "lets one browser in, once, within a minute"},
            "port": NUMBER,
            "public": YES_NO,
            "public_url": MAYBE_TEXT
            | {"description": "the address for everybody, while the app is public"},
            "state": TEXT | {"enum": [state.value for state in AppState]},
            "notice": TEXT | {"description": "what its owner should know, such as a taken port"},
        }
    ),
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
    "Template": _object(
        {
            "name": TEXT,
            "title": TEXT,
            "description": TEXT,
            "resources": _TEMPLATE_RESOURCES,
            "time_limit": MAYBE_NUMBER,
            "resource_group": MAYBE_TEXT,
            "place": NUMBER,
        }
    ),
    "ImageRule": _object(
        {
            "environment": TEXT,
            "version": TEXT,
            "title": TEXT,
            "seen_by": TEXT | {"enum": ["everybody", "some", "nobody"]},
            "accounts": _list(TEXT),
            "users": _list(TEXT),
        }
    ),
    "Caps": _object(
        {
            "max_shared_memory": MAYBE_TEXT,
            "idle_minutes": MAYBE_NUMBER
            | {"description": "unused for so long, a session is ended"},
            "idle_warning": MAYBE_NUMBER | {"description": "minutes before that to warn its owner"},
            "idle_cpu_percent": NUMBER
            | {"description": "a job that uses so much of one core is at work"},
            "public_apps": YES_NO | {"description": "whether owners may open apps to everybody"},
            "preferred_ports": YES_NO | {"description": "whether people may ask for a port"},
        }
    ),
    "Limits": _object(
        {
            "applied": YES_NO,
            "resource_groups": _LIMITED,
            "qos": _LIMITED,
            "accounts": _LIMITED,
            "users": _LIMITED,
        }
    ),
    "JournalEntry": _object(
        {
            "id": NUMBER,
            "time": TEXT | {"format": "date-time"},
            "who": TEXT,
            "action": TEXT,
            "target": TEXT,
            "detail": TEXT,
            "address": TEXT,
        }
    ),
    "Problem": _object(
        {
            "type": TEXT,
            "title": TEXT,
            "status": NUMBER,
            "detail": TEXT,
            "errors": _list(_object({"field": TEXT, "message": TEXT})),
            "more_errors": NUMBER
            | {"description": "how many wrong fields there are beyond the first ten"},
        },
        optional=["errors", "more_errors"],
    ),
}

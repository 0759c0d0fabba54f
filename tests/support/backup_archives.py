"""Manifests of backup archives."""

from __future__ import annotations

import hashlib
from typing import Any

from portal.adapters.backup.manifest import FORMAT


def member(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def manifest(**changes: Any) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "release": "7",
        "schema_revision": "0001",
        "made": "2026-11-25T00:00:00Z",
        "host": "portal.example.org",
        "database": "sqlite",
        "members": {"state/a": member(b"aaa")},
        **changes,
    }

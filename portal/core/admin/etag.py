"""Entity tags of the administrators' settings, for If-Match."""

from __future__ import annotations

import hashlib

from pydantic import BaseModel


def etag(value: BaseModel | None) -> str:
    """ETag of a value; "" for a missing one.

    Excludes `place`: moving one template changes the places of others that were not edited.
    """
    if value is None:
        return ""
    return hashlib.sha256(value.model_dump_json(exclude={"place"}).encode()).hexdigest()[:16]

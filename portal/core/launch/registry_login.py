"""A user's login for a registry from which images are pulled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from portal.core.validation import STRICT, Matching

MAX_PASSWORD = 8192
"""Characters; some registries hand out long tokens."""
MOST_LOGINS = 50
"""Saved logins of one user."""


class RegistryLogin(BaseModel):
    """User and password, or a token instead of the password."""

    model_config = STRICT

    user: Annotated[
        str,
        Field(min_length=1, max_length=200),
        Matching(r"[!-9;-~]+", "use printable characters without blanks and colons"),
    ]
    password: Annotated[
        str,
        Field(min_length=1, max_length=MAX_PASSWORD, repr=False),
        Matching(r"[ -~]+", "use printable ASCII characters, in one line"),
    ]


@dataclass(frozen=True)
class SavedLogin:
    """A saved login as shown to its owner, without the password."""

    registry: str
    user: str
    added: datetime | None
    """None for logins saved before this was recorded."""
    used: datetime | None
    """When a job last used it; None: never."""

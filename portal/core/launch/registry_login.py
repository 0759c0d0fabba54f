"""A user's login for a registry from which images are pulled."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from portal.core.validation import STRICT, Matching

MAX_PASSWORD = 8192
"""Characters; some registries hand out long tokens."""


class RegistryLogin(BaseModel):
    """User and password, or a token in its place."""

    model_config = STRICT

    user: Annotated[
        str,
        Field(max_length=200),
        Matching(r"[!-9;-~]+", "use printable characters without blanks and colons"),
    ]
    password: Annotated[
        str,
        Field(max_length=MAX_PASSWORD, repr=False),
        Matching(r"[ -~]+", "use printable ASCII characters, in one line"),
    ]

"""[log]: the log of the portal's processes, on standard error."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from portal.config.base import FROZEN


class LogSettings(BaseModel):
    """The log of web, worker and commands, which systemd's journal keeps."""

    model_config = FROZEN

    format: Literal["text", "json"] = Field(
        "text", description="Lines of text, or an object of JSON a line."
    )
    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least important lines that are written."
    )
    access: bool = Field(
        True,
        description="Write a line for each request to the portal: method, path without its query, "
        "status, milliseconds, user and request id. Requests to apps and for files bypass it.",
    )

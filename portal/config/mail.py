"""[mail]: messages to users by e-mail."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from portal.config.base import FROZEN

_ADDRESS = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+"


class MailSettings(BaseModel):
    """The site's mail server; without `host`, no mail is offered."""

    model_config = FROZEN

    host: str = Field(
        "",
        pattern=r"^[A-Za-z0-9.:-]*$",
        description="The mail server (SMTP). Empty: users are not offered e-mail.",
    )
    port: int = Field(25, ge=1, le=65535, description="Its port.")
    tls: Literal["none", "starttls", "tls"] = Field(
        "starttls", description='How the connection is encrypted; "none" only on a trusted network.'
    )
    user: str = Field("", description="Name to log in with; empty: without a log-in.")
    password_file: str = Field("", description="File with the password, readable by the portal.")
    sender: str = Field(
        "", pattern=rf"^$|^{_ADDRESS}$", description='Such as "slipway@example.org".'
    )
    recipient: str = Field(
        "",
        pattern=r"^$|^[A-Za-z0-9._%+-]*\{user\}[A-Za-z0-9._%+-]*@[A-Za-z0-9.-]+$",
        description='The address of a user, such as "{user}@example.org". Users cannot choose '
        "another one.",
    )
    per_hour: int = Field(
        20, ge=1, le=1000, description="Most messages to a user within an hour; others are joined."
    )

    @model_validator(mode="after")
    def _check_complete(self) -> Self:
        for name in ("sender", "recipient"):
            if self.host and not getattr(self, name):
                raise ValueError(f"{name} is missing")
        return self

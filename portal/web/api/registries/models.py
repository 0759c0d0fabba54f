"""Response models for logins of registries."""

from __future__ import annotations

from portal.web.api.models.base import ResponseModel


class RegistryLoginOut(ResponseModel):
    """A saved login; the password is never returned."""

    registry: str
    user: str


class RegistryLoginListOut(ResponseModel):
    """The caller's logins, by registry."""

    logins: list[RegistryLoginOut]
    registries: list[str]
    """The registries that the site permits; "*" stands for every one."""

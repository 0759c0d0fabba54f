"""Response models for logins of registries."""

from __future__ import annotations

from portal.core.launch.registry_login import SavedLogin
from portal.web.api.models.base import ResponseModel, Time


class RegistryLoginOut(ResponseModel):
    """A saved login; the password is never returned."""

    registry: str
    user: str
    added: Time | None
    """Null if it was saved before this time was recorded."""
    last_used: Time | None
    """When a job last used it; null: never."""

    @classmethod
    def of(cls, login: SavedLogin) -> RegistryLoginOut:
        """Build it."""
        return cls(
            registry=login.registry, user=login.user, added=login.added, last_used=login.used
        )


class RegistryLoginListOut(ResponseModel):
    """The caller's logins, by registry."""

    logins: list[RegistryLoginOut]
    registries: list[str]
    """The registries that the site permits; "*" means any registry."""

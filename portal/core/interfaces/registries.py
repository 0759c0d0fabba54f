"""Interface to the store of logins for registries."""

from __future__ import annotations

from typing import Protocol

from portal.core.launch.registry_login import RegistryLogin


class RegistryLoginStore(Protocol):
    """Logins by owner and registry. Every method is one transaction."""

    def all(self, owner: str) -> list[tuple[str, str]]:
        """Registries and users, by registry; never passwords."""
        ...

    def get(self, owner: str, registry: str) -> RegistryLogin | None:
        """One login; raises Unavailable if the key that encrypts passwords is missing."""
        ...

    def save(self, owner: str, registry: str, login: RegistryLogin) -> bool:
        """Save a login, replacing an earlier one; returns whether it is new."""
        ...

    def remove(self, owner: str, registry: str) -> bool:
        """Delete a login; returns whether there was one."""
        ...

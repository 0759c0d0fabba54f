"""Interface to the store of logins for registries."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from portal.core.launch.registry_login import RegistryLogin, SavedLogin


class RegistryLoginStore(Protocol):
    """Logins by owner and registry. Every method is one transaction."""

    def all(self, owner: str) -> list[SavedLogin]:
        """The owner's logins, by registry; never passwords."""
        ...

    def use(self, owner: str, registry: str, now: datetime) -> RegistryLogin | None:
        """One login, which counts as used now; raises Unavailable if the key that encrypts
        passwords is missing."""
        ...

    def save(self, owner: str, registry: str, login: RegistryLogin, now: datetime) -> bool:
        """Save a login, replacing an earlier one; returns whether it is new."""
        ...

    def remove(self, owner: str, registry: str) -> bool:
        """Delete a login; returns whether there was one."""
        ...

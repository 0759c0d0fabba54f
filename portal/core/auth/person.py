"""The authenticated user of a request, and how secrets are hashed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from portal.core.session.session import Session


def hash_secret(secret: str) -> str:
    """SHA-256 of a secret, as it is stored; sufficient for long random values."""
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True)
class Person:
    """The authenticated user of a request."""

    name: str
    admin: bool
    login: str
    """Identifies the login or token of the request."""
    service: str = ""
    """The service that acts for the user, if one does."""

    def may_see(self, session: Session) -> bool:
        """Whether this user may see and end the session."""
        return self.admin or self.name == session.owner

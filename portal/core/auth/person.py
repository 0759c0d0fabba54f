"""Who is asking, and how secrets are hashed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from portal.core.session.session import Session


def hash_secret(secret: str) -> str:
    """How every secret is stored: SHA-256, which is enough for long random values."""
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclass(frozen=True)
class Person:
    """Who is asking."""

    name: str
    admin: bool
    login: str
    """Identifies the login or token they came with."""

    def may_see(self, session: Session) -> bool:
        """Whether this person may see and end the session."""
        return self.admin or self.name == session.owner

"""Interface to the sums of what sessions used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from portal.core.admin.usage import By, Flow, Share, Span, UsageFilter


class UsageStore(Protocol):
    """Sums over all sessions that the portal knows; each method is one read-only transaction."""

    def flows(
        self, spans: Sequence[Span], only: UsageFilter | None
    ) -> tuple[Flow, list[Flow], list[Flow]]:
        """What was running at the first begin, and what started and ended in each span."""
        ...

    def shares(self, by: By, begin: datetime, end: datetime) -> list[Share]:
        """What sessions used from `begin` to `end`, by key and owner.

        Keys: the owner; the account as it was chosen ("" for Slurm's default); the environment
        ("": an image of the owner's own); the apps that were opened, as the audit log names them.
        """
        ...

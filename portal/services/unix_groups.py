"""Unix groups of users, for partitions (AllowGroups) and reservations that name groups."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from portal.core.auth.accounts import Identity
from portal.core.interfaces.systems import Clock
from portal.errors import PortalError

log = logging.getLogger(__name__)

KEPT = timedelta(seconds=60)
"""How long an answer is used again."""
RETRY_AFTER = timedelta(seconds=10)
"""How long a failure is: a silent login node delays one page, not every one."""
MAX_KNOWN = 2000
"""Users whose groups are kept."""


class UnixGroups:
    """Groups of users as the login node knows them, kept for a minute in each process."""

    def __init__(self, identity: Callable[[str], Identity | None], clock: Clock) -> None:
        self._identity = identity
        self._clock = clock
        self._known: dict[str, tuple[datetime, frozenset[str] | None]] = {}

    def of(self, user: str) -> frozenset[str] | None:
        """The names of a user's groups; None if they cannot be told now. Never raises."""
        now = self._clock()
        until, groups = self._known.get(user, (now, None))
        if now < until:
            return groups
        groups = self._ask(user)
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        # Counted from the answer, since a silent login node takes seconds to be given up.
        kept = RETRY_AFTER if groups is None else KEPT
        self._known[user] = (self._clock() + kept, groups)
        return groups

    def _ask(self, user: str) -> frozenset[str] | None:
        try:
            identity = self._identity(user)
        except PortalError as error:
            log.warning("groups of %s: not known: %s", user, error)
            return None
        return identity.groups if identity else None

"""Unix groups of users, for partitions (AllowGroups) and reservations that name groups."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from portal.core.auth.accounts import Identity
from portal.core.interfaces.systems import Clock
from portal.errors import PortalError

log = logging.getLogger(__name__)

LIFETIME = timedelta(seconds=60)
"""How long an answer is cached."""
RETRY_AFTER = timedelta(seconds=10)
"""How long a failure is cached: a login node that hangs delays one page, not every one."""
MAX_CACHED = 2000
"""Users whose groups are cached."""


class UnixGroups:
    """Groups of users as the login node knows them, cached for a minute in each process."""

    def __init__(self, identity: Callable[[str], Identity | None], clock: Clock) -> None:
        self._identity = identity
        self._clock = clock
        self._cache: dict[str, tuple[datetime, frozenset[str] | None]] = {}

    def of(self, user: str) -> frozenset[str] | None:
        """The names of a user's groups; None if they are not available now. Never raises."""
        now = self._clock()
        until, groups = self._cache.get(user, (now, None))
        if now < until:
            return groups
        groups = self._ask(user)
        if len(self._cache) >= MAX_CACHED:
            self._cache.clear()
        # From the time of the answer, since a login node that hangs takes seconds to time out.
        lifetime = RETRY_AFTER if groups is None else LIFETIME
        self._cache[user] = (self._clock() + lifetime, groups)
        return groups

    def _ask(self, user: str) -> frozenset[str] | None:
        try:
            identity = self._identity(user)
        except PortalError as error:
            log.warning("groups of %s: not known: %s", user, error)
            return None
        return identity.groups if identity else None

"""How often the same caller may come: so many at once, then so many a second."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from werkzeug.exceptions import TooManyRequests

MOST_KEYS = 20_000
"""Callers that are remembered; those that have not come for longest are forgotten first."""


@dataclass(frozen=True)
class Rate:
    """Requests a second, and how many may come at once after a rest."""

    per_second: float
    at_once: int


class RateLimiter:
    """Counts callers in this process; shared by its threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """How many more may come, and when that was so."""

    def take(self, key: str, rate: Rate) -> None:
        """Count a request; raises TooManyRequests, which says when to come again."""
        with self._lock:
            now = self._clock()
            left, since = self._known.pop(key, (float(rate.at_once), now))
            left = min(left + (now - since) * rate.per_second, float(rate.at_once))
            allowed = left >= 1
            self._known[key] = left - 1 if allowed else left, now
            while len(self._known) > MOST_KEYS:
                self._known.popitem(last=False)
        if not allowed:
            wait = math.ceil((1 - left) / rate.per_second)
            raise TooManyRequests("This comes too often.", retry_after=max(wait, 1))

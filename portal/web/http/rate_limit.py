"""Rate limits per caller (token bucket)."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from werkzeug.exceptions import TooManyRequests

MOST_KEYS = 20_000
"""Callers that are tracked; the least recently seen are dropped first."""


@dataclass(frozen=True)
class Rate:
    """Requests per second, and the size of a burst."""

    per_second: float
    at_once: int


class RateLimiter:
    """Counts requests in this process; shared by its threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tokens left, and when they were last refilled."""

    def take(self, key: str, rate: Rate) -> None:
        """Count a request; raises TooManyRequests with the seconds to wait."""
        with self._lock:
            now = self._clock()
            left, since = self._buckets.pop(key, (float(rate.at_once), now))
            left = min(left + (now - since) * rate.per_second, float(rate.at_once))
            allowed = left >= 1
            self._buckets[key] = left - 1 if allowed else left, now
            while len(self._buckets) > MOST_KEYS:
                self._buckets.popitem(last=False)
        if not allowed:
            wait = math.ceil((1 - left) / rate.per_second)
            raise TooManyRequests("Too many requests.", retry_after=max(wait, 1))

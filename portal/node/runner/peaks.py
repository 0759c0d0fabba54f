"""Measures the job's use between two reports, so that rare reports hide no short computation."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The report's fields by the measured ones of which they have the highest value.
HIGHEST = {"memory_bytes": "peak_memory_bytes", "gpu_percent": "peak_gpu_percent"}
CPU = "peak_cpu_percent"
MOST_CPU = 1e6


class Peaks:
    """Remembers the highest values and all busy apps since the last report."""

    def __init__(
        self,
        usage: Callable[[], dict[str, object]],
        shortest: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`shortest`: the seconds over which a use of processors is measured at least.

        In a fraction of a second a few milliseconds, as of the runner itself, are a high one.
        """
        self._usage = usage
        self._shortest = shortest
        self._clock = clock
        self._last: tuple[float, float] | None = None
        self._highest: dict[str, float] = {}
        self._busy: list[str] = []

    def measure(self) -> dict[str, object]:
        """Measure now; returns the measured values."""
        usage, now = self._usage(), self._clock()
        for field, peak in HIGHEST.items():
            self._note(peak, usage.get(field))
        cpu = usage.get("cpu_seconds")
        if isinstance(cpu, int | float):
            if self._last is None:
                self._last = now, cpu
            elif now > self._last[0] and now - self._last[0] >= self._shortest:
                percent = 100 * (cpu - self._last[1]) / (now - self._last[0])
                self._note(CPU, min(max(round(percent, 1), 0.0), MOST_CPU))
                self._last = now, cpu
        busy = usage.get("busy")
        if isinstance(busy, list):
            self._busy += [app for app in busy if app not in self._busy]
        return usage

    def report(self, detailed: bool) -> dict[str, object]:
        """The values measured now; with those since the last report if `detailed`."""
        usage = self.measure()
        return {**usage, **self._highest, "busy": self._busy} if detailed else usage

    def clear(self) -> None:
        """Forget what the portal has received."""
        self._highest, self._busy = {}, []

    def _note(self, peak: str, value: object) -> None:
        if isinstance(value, int | float):
            self._highest[peak] = max(value, self._highest.get(peak, value))

"""The watchdog's signs of life, by which root's other programs know whether it watches.

JOBS/../watch/heartbeat, in a folder that users cannot enter: when it was started lately, and when
it last measured everything. Times are of the machine's monotonic clock, which all processes share
and nobody sets; the file is gone after a reboot, as that clock begins anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from portal.node.gpu import slices, untrusted
from portal.node.gpu.watchdog.lock import is_running

SILENT = 30.0
"""Seconds without a complete measurement after which a watchdog does not watch."""
OFTEN, SPAN = 5, 600.0
"""Starts in so many seconds that are too many: between them nobody is suspected of anything."""
ROUNDING = 0.1
"""Seconds by which times may differ from each other that were rounded to tenths."""
Clock = Callable[[], float]


class Heartbeat:
    """What the watchdog writes."""

    def __init__(self, jobs: Path, clock: Clock = time.monotonic) -> None:
        self._file = _file(jobs)
        self._clock = clock
        self._starts: list[float] = []

    def start(self) -> None:
        """Note that the watchdog was started; raises OSError."""
        now = self._clock()
        self._starts = [*_lately(_read(self._file)[0], now), now]
        self.beat()

    def beat(self) -> None:
        """Note that everything was measured, or nothing has to be; raises OSError."""
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps({"starts": self._starts, "beat": self._clock()})
        slices.write_atomically(self._file, text + "\n")


def problem(jobs: Path = slices.JOBS, clock: Clock = time.monotonic) -> str:
    """Why the GPUs of this node are not watched; "" if they are. Raises OSError."""
    if not is_running(jobs):
        return "the GPU watchdog does not run"
    starts, beat = _read(_file(jobs))
    now = clock()
    silent = now - (beat if beat is not None else starts[-1] if starts else 0.0)
    if round(silent, 1) > SILENT + ROUNDING:
        return f"the GPU watchdog has made no complete measurement for more than {SILENT:.0f} s"
    if len(_lately(starts, now)) > OFTEN:
        return f"the GPU watchdog was started more than {OFTEN} times in {SPAN / 60:.0f} minutes"
    return ""


def _file(jobs: Path) -> Path:
    return jobs.parent / "watch" / "heartbeat"


def _lately(starts: list[float], now: float) -> list[float]:
    """The starts of the last minutes; those of another boot would be in the future."""
    found = [start for start in starts if -ROUNDING <= round(now - start, 1) <= SPAN + ROUNDING]
    return found[-2 * OFTEN :]


def _read(file: Path) -> tuple[list[float], float | None]:
    """The starts and the last beat; nothing from a file that is missing or unreadable."""
    try:
        found = json.loads(untrusted.read(file))
        return [float(start) for start in found["starts"]], float(found["beat"])
    except (OSError, ValueError, KeyError, TypeError):
        return [], None

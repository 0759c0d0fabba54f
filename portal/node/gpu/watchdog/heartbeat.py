"""The watchdog's heartbeat, from which root's other programs see whether it works.

JOBS/../watch/heartbeat, in a folder that users cannot enter, has the times of its recent starts and
of its last complete measurement. They are of the monotonic clock, which all processes share and
which cannot be set; a reboot deletes the file and restarts that clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from portal.node.gpu import slices, untrusted
from portal.node.gpu.watchdog.lock import is_running

SILENT = 30.0
"""Seconds without a complete measurement after which the watchdog counts as failed."""
OFTEN, SPAN = 5, 600.0
"""More starts than this within SPAN seconds are a fault: each one discards all suspicions."""
ROUNDING = 0.1
"""Tolerance in seconds for times that were rounded to tenths."""
Clock = Callable[[], float]


class Heartbeat:
    """Writes the heartbeat file."""

    def __init__(self, jobs: Path, clock: Clock = time.monotonic) -> None:
        self._file = _file(jobs)
        self._clock = clock
        self._starts: list[float] = []

    def start(self) -> None:
        """Record a start of the watchdog; raises OSError."""
        now = self._clock()
        self._starts = [*_recent(_read(self._file)[0], now), now]
        self.beat()

    def beat(self) -> None:
        """Record a complete measurement, also one of no jobs; raises OSError."""
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
    if len(_recent(starts, now)) > OFTEN:
        return f"the GPU watchdog was started more than {OFTEN} times in {SPAN / 60:.0f} minutes"
    return ""


def _file(jobs: Path) -> Path:
    return jobs.parent / "watch" / "heartbeat"


def _recent(starts: list[float], now: float) -> list[float]:
    """Return the recent starts; those of another boot would be in the future."""
    recent = [start for start in starts if -ROUNDING <= round(now - start, 1) <= SPAN + ROUNDING]
    return recent[-2 * OFTEN :]


def _read(file: Path) -> tuple[list[float], float | None]:
    """Read the starts and the last beat; ([], None) from a missing or unreadable file."""
    try:
        data = json.loads(untrusted.read(file))
        return [float(start) for start in data["starts"]], float(data["beat"])
    except (OSError, ValueError, KeyError, TypeError):
        return [], None

"""Sessions that take turns on a GPU, simulated second by second with the real watchdog's accounts.

Each session launches kernel after kernel, as the limiter admits them (gres/shim/share.h), and those
that compute at the same time are served equally. NVML is as on an H200 with driver 580: five times
a second it looks which process the GPU runs.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from portal.node.gpu.slices import JobSlice, Part
from portal.node.gpu.watchdog.neighbours import OFFSET, Measurement, Neighbours

GPU = "GPU-0"
TOLERANCE = 0.1
DEBT = 10.0
MOST_AHEAD = 1.0
LOOKS = 0.2
"""Seconds between two of NVML's looks."""
START = 1000.0
"""The clock's time at the beginning, in seconds."""


@dataclass
class Session:
    """What the limiter of one session knows, in seconds."""

    percent: int
    ready: float
    arrival: float = -TOLERANCE
    measured: float = 0.0
    used: float = 0.0
    began: float = 0.0
    left: float = 0.0
    """Of the kernel that runs."""
    looks: int = 0
    charge: int = 1000

    def end(self, now: float, chance: float) -> None:
        """Its kernel has ended."""
        self.left = 0.0
        self.measured += now - self.began
        charged = (now - self.began) * self.charge / 1000 * 100 / self.percent
        self.arrival = min(max(self.arrival, self.began - TOLERANCE) + charged, now + DEBT)
        self.ready = max(now, self.arrival - min(MOST_AHEAD, chance * charged))


class TakingTurns:
    """A GPU with sessions of so many percent, which run kernels of so many seconds."""

    def __init__(self, folder: Path, percents: Sequence[int], kernel: float, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._kernel = kernel
        self._now = 0.0
        self._next_look = self._random.random() * LOOKS
        self._next_poll = self._random.random()
        self._neighbours = Neighbours(lambda job: folder / str(job), print)
        self._slices = {
            job: JobSlice("limiter", (Part(GPU, 1 << 30, percent),))
            for job, percent in enumerate(percents, 1)
        }
        self._sessions = {
            job: Session(percent, self._random.random() / 20)
            for job, percent in enumerate(percents, 1)
        }
        for job in self._slices:
            (folder / str(job)).mkdir()

    def shares(self, warm: float, seconds: float) -> list[float]:
        """Percent of the GPU that each session uses after the first `warm` seconds."""
        self._run_until(warm)
        before = [session.used for session in self._sessions.values()]
        self._run_until(warm + seconds)
        after = [session.used for session in self._sessions.values()]
        return [100 * (new - old) / seconds for old, new in zip(before, after, strict=True)]

    def _run_until(self, end: float) -> None:
        while self._now < end:
            running = [one for one in self._sessions.values() if one.left]
            ready = [max(self._now, one.ready) for one in self._sessions.values() if not one.left]
            ends = [self._now + min(one.left for one in running) * len(running)] if running else []
            self._advance(min([self._next_look, self._next_poll, *ready, *ends]), running)
            self._launch()
            self._look()

    def _advance(self, until: float, running: Sequence[Session]) -> None:
        for one in running:
            one.left -= (until - self._now) / len(running)
            one.used += (until - self._now) / len(running)
            if one.left < 1e-9:
                one.end(until, self._random.random())
        self._now = until

    def _launch(self) -> None:
        for one in self._sessions.values():
            if not one.left and one.ready <= self._now:
                one.left, one.began = self._kernel * (1 + self._random.random() / 1000), self._now

    def _look(self) -> None:
        if self._now >= self._next_look:
            self._next_look += LOOKS
            running = [one for one in self._sessions.values() if one.left]
            if running:
                self._random.choice(running).looks += 1
        if self._now >= self._next_poll:
            self._next_poll += 1
            self._poll()

    def _poll(self) -> None:
        busy = {job: 100 * LOOKS * one.looks for job, one in self._sessions.items()}
        for job, one in self._sessions.items():
            one.looks = 0
            counters = bytearray(OFFSET + 64)
            values = int((START + one.arrival) * 1e9), int(one.measured * 1e9)
            struct.pack_into("=qq", counters, OFFSET, *values)
            (self._folder / str(job) / "counters").write_bytes(counters)
        memory = {job: {job: 1} for job in self._slices}
        now = int((START + self._now) * 1e9)
        self._neighbours.record(Measurement(GPU, self._slices, memory, busy, now))
        for job, one in self._sessions.items():
            self._neighbours.write(job, self._slices[job])
            lines = (self._folder / str(job) / "load").read_text().splitlines()
            one.charge = int(dict(line.split("=") for line in lines)["charge"])

"""What sessions get that compute at the same time, with root's watchdog beside them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.gpu.costs import start
from bench.gpu.table import NO_TIME, Line
from tests.gpu.machine import Gpu
from tests.gpu.session import Session

WARM = 1.0
"""Of the measured time, before it: about five seconds that do not count, in which the watchdog gets
to know the neighbours."""
PERIODS = 10
"""What is measured lasts as long as so many kernels do at the session's share, at least, however
short the budget: in an eighth of the GPU, a kernel of 200 ms is one in 1.6 s."""
POINTS = 10
HELD = 0.9
START = 3.0
"""Seconds until the programs of a layout are ready."""
LONGEST_WAIT = 10.0
"""Seconds for which a session waits at most, whatever a kernel took (SHARE_DEBT of the shim)."""


@dataclass(frozen=True)
class Layout:
    """So many sessions with so much of the GPU each, and the least that each must get."""

    sessions: int
    percent: float
    least: float

    def __str__(self) -> str:
        share = f"{self.percent:g} %"
        return f"{share}, alone" if self.sessions == 1 else f"{self.sessions} sessions of {share}"

    def period(self, us: int) -> float:
        """Seconds from one kernel to the next, if the session has its share."""
        return us / 1e6 * 100 / self.percent

    def measured(self, seconds: float, us: int) -> float:
        """Seconds that kernels of one length are measured."""
        return max(seconds, PERIODS * self.period(us))

    def needs(self, seconds: float, us: int) -> float:
        """Seconds that this takes at most. What counts and what does not both end with a kernel; it
        may wait for the one before, which was charged for the time of all sessions.
        """
        last = min(LONGEST_WAIT, self.sessions * self.period(us)) + self.sessions * us / 1e6
        return START + (1 + WARM) * self.measured(seconds, us) + 2 * last

    def aim(self, together: float) -> str:
        """What all of them should have, if programs side by side get this part of what one gets."""
        if self.sessions == 1:
            return f"{self.percent:g} ± {POINTS} %"
        return f"each ≥ {self.least * together:.1f} %, ≤ {self.percent + POINTS:g} %"

    def good(self, shares: Sequence[float], together: float) -> bool:
        """Whether they have it."""
        least = self.least * (together if self.sessions > 1 else 1.0)
        return least <= min(shares) and max(shares) <= self.percent + POINTS


LAYOUTS = (Layout(1, 25, 15), Layout(2, 50, 45), Layout(4, 25, 22), Layout(8, 12.5, 11))
KERNELS = {"20 µs": 20, "1 ms": 1000, "200 ms": 200_000}
MOST_SESSIONS = max(layout.sessions for layout in LAYOUTS)


def fitting(sessions: Sequence[Session]) -> list[Layout]:
    """The layouts for which there are enough sessions."""
    return [layout for layout in LAYOUTS if layout.sessions <= len(sessions)]


def rates(gpu: Gpu, sessions: Sequence[Session | None], words: Sequence[object]) -> list[float]:
    """The same program in several sessions at once (None: without the shim): each one's rate."""
    program, *rest = words
    with ExitStack() as stack:
        started = [stack.enter_context(start(gpu, one, str(program), *rest)) for one in sessions]
        for one in started:
            one.next_message()
        for one in started:
            one.go_on()
        return [one.end()["rate"] for one in started]


def kernels_need(seconds: float, name: str) -> float:
    """Seconds that kernels of one length take at least: bare, and in the first layout."""
    return 3 * START + 2 * seconds + LAYOUTS[0].needs(seconds, KERNELS[name])


def kernels(
    gpu: Gpu, sessions: Sequence[Session], seconds: float, until: float, name: str
) -> Iterator[Line]:
    """Kernels of one length, in every layout. The sessions' memory is full meanwhile."""
    us, about = KERNELS[name], f"Kernels of {name}"
    bare = ("launches", "busy", seconds, us, 0.2)
    full = rates(gpu, [None], bare)[0]
    together = min(1.0, sum(rates(gpu, [None, None], bare)) / full)
    for layout in fitting(sessions):
        if time.monotonic() + layout.needs(seconds, us) > until:
            shown, aim = f"{full:.1f} /s", layout.aim(together)
            yield Line(f"{about}, {layout}", shown, NO_TIME, aim, None)
            continue
        measured = layout.measured(seconds, us)
        words = ("launches", "busy", measured, us, WARM * measured, HELD)
        yield _line(gpu, sessions, layout, about, (full, together), words)


def training(gpu: Gpu, sessions: Sequence[Session], seconds: float) -> Iterator[Line]:
    """PyTorch, which leaves gaps between its kernels."""
    words = ("torch_work", "busy", seconds, WARM * seconds, "train")
    bare = ("torch_work", "busy", seconds, 1, "train")
    full = rates(gpu, [None], bare)[0]
    together = min(1.0, sum(rates(gpu, [None, None], bare)) / full)
    for layout in fitting(sessions[:4]):
        yield _line(gpu, sessions, layout, "PyTorch, training", (full, together), words)


def _line(
    gpu: Gpu,
    sessions: Sequence[Session],
    layout: Layout,
    about: str,
    bare: tuple[float, float],
    words: Sequence[object],
) -> Line:
    """`bare`: a program's rate, and the part of it that two get together side by side."""
    full, together = bare
    chosen = sessions[: layout.sessions]
    for session in chosen:
        session.grant(gpu.part(layout.percent / 100), int(layout.percent))
    shares = [100 * found / full for found in rates(gpu, chosen, words)]
    for session in chosen:
        session.retire()
    shown = ", ".join(f"{share:.1f}" for share in shares)
    before = f"{full:.1f} /s"
    if layout.sessions > 1:
        before += f", two get {100 * together:.0f} %"
    aim, good = layout.aim(together), layout.good(shares, together)
    return Line(f"{about}, {layout}", before, f"{shown} %", aim, good)

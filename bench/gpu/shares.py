"""What sessions get that compute at the same time, with root's watchdog beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.gpu.costs import start
from bench.gpu.table import Line
from tests.gpu.machine import Gpu
from tests.gpu.session import Session

WARM = 0.8
"""Of the measured time, before it: about five seconds that do not count, in which the watchdog gets
to know the neighbours."""
POINTS = 10
HELD = 0.9


@dataclass(frozen=True)
class Layout:
    """So many sessions with so much of the GPU each, and the least that each must get."""

    sessions: int
    percent: float
    least: float

    @property
    def aim(self) -> str:
        if self.sessions == 1:
            return f"{self.percent:g} ± {POINTS} %"
        return f"each ≥ {self.least:g} %, ≤ {self.percent + POINTS:g} %"

    def good(self, shares: Sequence[float]) -> bool:
        """Whether all of them have what they should."""
        return self.least <= min(shares) and max(shares) <= self.percent + POINTS


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


def kernels(gpu: Gpu, sessions: Sequence[Session], seconds: float, name: str) -> Iterator[Line]:
    """Kernels of one length, in every layout. The sessions' memory is full meanwhile."""
    words = ("launches", "busy", seconds, KERNELS[name])
    full = rates(gpu, [None], [*words, 0.2])[0]
    for layout in fitting(sessions):
        measured = [*words, WARM * seconds, HELD]
        yield _line(gpu, sessions, layout, f"Kernels of {name}", full, measured)


def training(gpu: Gpu, sessions: Sequence[Session], seconds: float) -> Iterator[Line]:
    """PyTorch, which leaves gaps between its kernels."""
    words = ("torch_work", "busy", seconds, WARM * seconds, "train")
    full = rates(gpu, [None], ["torch_work", "busy", seconds, 1, "train"])[0]
    for layout in fitting(sessions[:4]):
        yield _line(gpu, sessions, layout, "PyTorch, training", full, words)


def _line(
    gpu: Gpu,
    sessions: Sequence[Session],
    layout: Layout,
    about: str,
    full: float,
    words: Sequence[object],
) -> Line:
    chosen = sessions[: layout.sessions]
    for session in chosen:
        session.grant(gpu.part(layout.percent / 100), int(layout.percent))
    shares = [100 * found / full for found in rates(gpu, chosen, words)]
    for session in chosen:
        session.retire()
    single = layout.sessions == 1
    share = f"{layout.percent:g} %"
    many = f"{share}, alone" if single else f"{layout.sessions} sessions of {share}"
    shown = ", ".join(f"{share:.1f}" for share in shares)
    return Line(f"{about}, {many}", f"{full:.1f} /s", f"{shown} %", layout.aim, layout.good(shares))

"""What the shim costs: the same programs bare, without a limit (100 %) and with one (99 %)."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from typing import Any

from bench.gpu.table import Line
from tests.gpu.machine import PROGRAMS, Gpu
from tests.gpu.prepare import RATES
from tests.gpu.program import Program
from tests.gpu.session import Session

ROUNDS = 3
LIMIT = 90.0
"""Seconds for one program."""
Run = Callable[[Session | None], dict[str, Any]]
"""One round: without the shim, or in a session."""

LAUNCHES = {
    "same:0": ("empty kernels, one stream", 5, 20),
    "streams:0": ("empty kernels, two streams by turns", 5, 100),
    "grids:0": ("empty kernels, ever new grids", 5, 100),
    "same:50": ("kernels of 50 µs", 5, 5),
    "same:100": ("kernels of 100 µs", 5, 5),
    "same:150": ("kernels of 150 µs", 5, 5),
    "streams:50": ("kernels of 50 µs, two streams by turns", 5, 10),
    "graph:5": ("graphs of 20 kernels of 5 µs", 5, 5),
    "pdl:5": ("dependent launches (PDL) of 5 µs", 5, 20),
    "pdl:50": ("dependent launches (PDL) of 50 µs", 5, 5),
}
"""By mode of rates.c: what it is, and the most percent slower without a limit and with one."""
WORK = {
    "train": ("PyTorch, training (ResNet)", 2, 2),
    "small": ("PyTorch, small kernels", 5, 5),
    "lengths": ("PyTorch, sequences of ever new lengths", 5, 10),
}
PERCENTS = (100, 99)


def start(gpu: Gpu, session: Session | None, program: str, *words: object) -> Program:
    """A program in a session, or without the shim."""
    if session is None:
        return Program(program, words, gpu.driver.environment, limit=LIMIT)
    return session.start(program, *words, limit=LIMIT)


def launches(gpu: Gpu, session: Session, seconds: float) -> Iterator[Line]:
    """Launching by CUDA's driver API, in C; less is better."""
    loops = os.environ["SLIPWAY_GPU_LOOPS"]

    def run(inside: Session | None) -> dict[str, Any]:
        words = (PROGRAMS / "work.ptx", seconds / 10, loops, *LAUNCHES)
        with start(gpu, inside, str(RATES), *words) as program:
            return program.end()

    for name, percent, (bare, found) in _by_turns(run, session):
        about, *most = LAUNCHES[name]
        aim = most[PERCENTS.index(percent)]
        slower = 100 * (found / bare - 1)
        yield _line(f"Launch, {about}", percent, f"{bare:.2f} µs", f"{found:.2f} µs", slower, aim)


def work(gpu: Gpu, session: Session, seconds: float) -> Iterator[Line]:
    """PyTorch; more is better."""

    def run(inside: Session | None) -> dict[str, Any]:
        with start(gpu, inside, "torch_work", "rates", seconds / 2, *WORK) as program:
            return program.end()

    for name, percent, (bare, found) in _by_turns(run, session):
        about, *most = WORK[name]
        aim = most[PERCENTS.index(percent)]
        slower = 100 * (bare / found - 1)
        yield _line(about, percent, f"{bare:.1f} /s", f"{found:.1f} /s", slower, aim)


def _by_turns(run: Run, session: Session) -> Iterator[tuple[str, int, tuple[float, float]]]:
    """Medians, bare and in the session; by turns, since a GPU heats up meanwhile."""
    memory = session.memory
    bare: list[dict[str, float]] = []
    inside: dict[int, list[dict[str, float]]] = {percent: [] for percent in PERCENTS}
    for _ in range(ROUNDS):
        bare.append(run(None))
        for percent in PERCENTS:
            inside[percent].append(run(session.grant(memory, percent)))
    for name in bare[0]:
        alone = statistics.median(one[name] for one in bare)
        for percent in PERCENTS:
            yield name, percent, (alone, statistics.median(one[name] for one in inside[percent]))


def _line(about: str, percent: int, bare: str, inside: str, slower: float, aim: int) -> Line:
    limit = "no limit" if percent == 100 else f"limit {percent} %"
    return Line(
        f"{about}, {limit}", bare, f"{inside}, {slower:+.1f} %", f"≤ {aim} % slower", slower <= aim
    )

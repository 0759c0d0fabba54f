"""The real performance and cost of a slice of a GPU, as ratios measured on one NVIDIA GPU.

    bash tests/gpu/run.sh 3                  this: at most ten minutes
    python -m bench.gpu --budget SECONDS     in less time, with less precision
    python -m bench.gpu --only PART          as launches, work, "kernels of 1 ms", training
    python -m bench.gpu --table              only the Markdown of what all steps have left in OUT

It prints a Markdown block for gres/README.md, and exits with 1 if a figure misses its aim. PYTHON
names the Python that has PyTorch; without it those lines are omitted.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from bench.gpu import costs, shares
from bench.gpu.table import NO_TIME, Line, markdown, write
from tests.gpu.machine import OUT, Gpu
from tests.gpu.prepare import PrepareFailed, prepare
from tests.gpu.program import ProgramFailed
from tests.gpu.session import Session, has, run_bare
from tests.gpu.watchdog import watching

BUDGET = 560.0
"""Seconds for everything; run.sh ends it after 600."""
USUAL = 5.0
"""Seconds that a program is measured, where there is time."""
NEEDS = 560.0
"""Seconds that everything takes then."""
Part = tuple[str, float, Callable[[], Iterator[Line]]]
"""Name, seconds without which it is not begun, and what measures."""


def parts(gpu: Gpu, sessions: Sequence[Session], seconds: float, until: float) -> Iterator[Part]:
    """Everything that is measured, the most telling first."""
    one, scale = sessions[0], seconds / USUAL
    yield "launches", 65 * scale, partial(costs.launches, gpu, one, seconds)
    if has("torch"):
        yield "work", 130 * scale, partial(costs.work, gpu, one, seconds)
    for name in ("1 ms", "20 µs", "200 ms"):
        run = partial(shares.kernels, gpu, sessions, seconds, until, name)
        yield f"kernels of {name}", shares.kernels_need(seconds, name), run
    if has("torch"):
        yield "training", 70 * scale, partial(shares.training, gpu, sessions, seconds)


def measure(
    gpu: Gpu, sessions: Sequence[Session], seconds: float, until: float, only: Sequence[str]
) -> Iterator[Line]:
    """All parts; one that fails, or for which there is no time, is a line that says so."""
    for name, needs, run in parts(gpu, sessions, seconds, until):
        if only and name not in only:
            continue
        for session in sessions:
            session.retire()
        if time.monotonic() + needs > until:
            yield Line(name, "", NO_TIME, "", None)
            continue
        sessions[0].grant(gpu.part(0.5), 100)
        try:
            with watching("bench"):
                yield from run()
        except (ProgramFailed, RuntimeError, OSError) as error:
            yield Line(name, "", f"failed: {str(error).splitlines()[0]}", "", False)


def _about(gpu: Gpu) -> dict[str, Any]:
    versions = [f"driver {gpu.version}", f"Linux {platform.release()}"]
    if has("torch"):
        versions.append(run_bare(gpu, "torch_memory", "version")["version"])
    return {
        "step": "3",
        "gpu": gpu.name,
        "memory": gpu.memory,
        "versions": versions,
        "standin": not gpu.real,
    }


def bench(budget: float, most: int, only: Sequence[str]) -> int:
    """Measure and print."""
    until = time.monotonic() + budget
    try:
        gpu, settings = prepare(most)
    except PrepareFailed as error:
        print(f"bench.gpu cannot run: {error}", file=sys.stderr)
        return 1
    os.environ.update(settings)
    seconds = USUAL * min(1.0, budget / NEEDS)
    about = _about(gpu)
    lines: list[Line] = []
    write(OUT, about, lines)
    sessions = [Session(number, gpu) for number in range(1, most + 1)]
    for line in measure(gpu, sessions, seconds, until, only):
        lines.append(line)
        print(line, flush=True)
        write(OUT, about, lines)
    print()
    print("\n".join(markdown(OUT)))
    return int(any(line.good is False for line in lines))


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="bench.gpu")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds for everything")
    parser.add_argument(
        "--sessions", type=int, default=shares.MOST_SESSIONS, help="at most so many side by side"
    )
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="as launches")
    parser.add_argument("--table", action="store_true", help="only print what the steps have left")
    chosen = parser.parse_args()
    if chosen.table:
        print("\n".join(markdown(OUT)))
        return 0
    return bench(chosen.budget, chosen.sessions, chosen.only)


if __name__ == "__main__":
    sys.exit(main())

"""The real performance and cost of a slice of a GPU, as ratios measured on one NVIDIA GPU.

    bash tests/gpu/run.sh          the tests, then this: at most ten minutes
    python -m bench.gpu            this alone

It prints a Markdown block for gres/README.md, and exits with 1 if a figure misses its target.
PYTHON names the Python that has PyTorch; without it those lines are omitted.
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from tests.gpu.session import PYTHON, WORK, Gpu, Session, run_bare

SHARE = 25
SECONDS = 8
ROUNDS = 3
KERNELS = {"20 us": 20, "1 ms": 1000, "200 ms": 200_000}


@dataclass(frozen=True)
class Figure:
    """A line of the table."""

    name: str
    value: float
    """Percent."""
    aim: str
    good: bool

    def __str__(self) -> str:
        missed = "" if self.good else " **missed**"
        return f"| {self.name} | {self.value:.1f} % | {self.aim}{missed} |"


def has(framework: str) -> bool:
    """Whether the programs' Python has the framework."""
    code = f"from importlib.util import find_spec; exit(find_spec({framework!r}) is None)"
    return subprocess.run([PYTHON, "-c", code], check=False).returncode == 0


def cost(gpu: Gpu, session: Session, name: str, most: float, *words: object) -> Figure:
    """The slowdown of a program behind the shim; alternating, since a GPU heats up meanwhile."""
    program, *rest = words
    ratios = []
    for _ in range(ROUNDS):
        bare = run_bare(gpu, str(program), *rest)["rate"]
        ratios.append(bare / session.run(str(program), *rest)["rate"])
    value = 100 * (statistics.median(ratios) - 1)
    return Figure(name, value, f"< {most:g} %", value < most)


def rates(sessions: list[Session], *words: object) -> list[float]:
    """The same program in several sessions at once: each one's work per second."""
    program, *rest = words
    with ExitStack() as stack:
        started = [stack.enter_context(session.start(str(program), *rest)) for session in sessions]
        for one in started:
            one.next_message()
        for one in started:
            one.go_on()
        return [one.end()["rate"] for one in started]


def share(full: float, name: str, found: float) -> Figure:
    """The work of a session of 25 %, relative to the whole GPU's."""
    value = 100 * found / full
    return Figure(name, value, f"{SHARE} ± 10 %", abs(value - SHARE) <= 10)


def shares(gpu: Gpu, sessions: list[Session], name: str, *words: object) -> Iterator[Figure]:
    """Alone, then beside a neighbour with as much to do."""
    program, *rest = words
    full = run_bare(gpu, str(program), *rest)["rate"]
    yield share(full, f"{name}, alone", rates(sessions[:1], *words)[0])
    for number, found in enumerate(rates(sessions, *words), 1):
        yield share(full, f"{name}, two sessions busy: number {number}", found)


def measure(gpu: Gpu) -> Iterator[Figure]:
    """All measurements."""
    sessions = [Session(name, gpu) for name in ("one", "two")]
    half = gpu.memory // 2
    free = sessions[0].grant(half, 100)
    yield cost(gpu, free, "Launches, no SM share, slower by", 5, "driver", "launches", 200_000)
    if has("torch"):
        yield cost(gpu, free, "PyTorch, small kernels, slower by", 5, "pytorch", "small", 100_000)
        yield cost(gpu, free, "PyTorch, training, slower by", 2, "pytorch", "train", SECONDS)
    near = sessions[0].grant(half, 99)
    yield cost(
        gpu, near, "Launches, SM share of 99 %, slower by", 50, "driver", "launches", 200_000
    )
    for session in sessions:
        session.grant(half, SHARE)
    for name, us in KERNELS.items():
        yield from shares(gpu, sessions, f"Kernels of {name}", "driver", "busy", SECONDS, us)
    if has("torch"):
        yield from shares(gpu, sessions, "PyTorch, training", "pytorch", "train", SECONDS)


def seen_by_tests() -> dict[str, str]:
    """Figures noted by the tests."""
    try:
        seen: dict[str, str] = json.loads((WORK / "figures.json").read_text())
    except FileNotFoundError:
        return {}
    return seen


def main() -> int:
    """Measure and print."""
    try:
        gpu = Gpu.find()
    except FileNotFoundError as error:
        print(f"bench.gpu needs an NVIDIA GPU: {error}", file=sys.stderr)
        return 1
    versions = [f"driver {gpu.version}", f"Linux {platform.release()}"]
    if has("torch"):
        versions.append(run_bare(gpu, "pytorch", "version")["version"])
    print(f"\n**{gpu.name}**, {gpu.memory >> 20} MiB, {', '.join(versions)}")
    if gpu.driver.standin:
        print("\nNo GPU: a stand-in driver, so these figures are meaningless.")
    print("\n| seen | figure | aim |\n|---|---|---|")
    for name, value in seen_by_tests().items():
        print(f"| {name} | {value} | |")
    good = True
    for figure in measure(gpu):
        good = good and figure.good
        print(figure, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

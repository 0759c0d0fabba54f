"""Root's real watchdog with NVML of the real driver: who is ended, and who is not."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tests.gpu.case import Trial, case
from tests.gpu.machine import MIB
from tests.gpu.program import JOB
from tests.gpu.session import start_bare
from tests.gpu.watchdog import MARGIN, watching

SHARE = 0.1
"""A small slice, so that what is beyond it can be held several times."""
BEYOND = 1.3
"""Times what a job with one process may hold."""
WITHIN = 10.0
"""Seconds until whoever holds that is ended."""


@case(
    "2a",
    35,
    "a process that holds more than slice and margin, past the shim, is ended; the log says so",
)
def watchdog_kills(trial: Trial) -> None:
    session = trial.session(share=SHARE)
    size = int((session.memory + MARGIN * MIB) * BEYOND)
    with (
        watching("kills") as dog,
        session.start("memory", "hold", 0.5) as honest,
        start_bare(trial.gpu, "memory", "keep", size, env={JOB: "1"}) as program,
        start_bare(trial.gpu, "memory", "context") as stranger,
    ):
        stranger.next_message()
        honest.next_message()
        began = time.monotonic()
        held = program.next_message()["held"]
        trial.check("held past the shim", held, good=held >= size, must=f"≥ {size}")
        ended = program.wait(WITHIN)
        seconds = time.monotonic() - began
        trial.check("ended", ended, good=ended, must=f"within {WITHIN:g} s")
        time.sleep(2)
        trial.check(
            "the session's other process", honest.running, good=honest.running, must="lives"
        )
        trial.check("a process of nobody", stranger.running, good=stranger.running, must="lives")
        said = [line for line in dog.about(1) if "ended" in line and f"PID {program.pid}" in line]
        trial.check(
            "log", dog.lines()[-3:], good=len(said) == 1, must=f"one line on PID {program.pid}"
        )
        trial.note("The watchdog ended a process that bypassed the shim", f"{seconds:.1f} s after")


@case("2a", 35, "a full slice and three more contexts are left alone for 5 s")
def watchdog_spares(trial: Trial) -> None:
    session = trial.session()
    with watching("spares") as dog, ExitStack() as stack:
        programs = [stack.enter_context(session.start("memory", "hold", 0.98))]
        programs += [stack.enter_context(session.start("memory", "context")) for _ in range(3)]
        for program in programs:
            program.next_message()
        sizes = trial.gpu.processes()
        total = sum(sizes.get(program.pid, 0) for program in programs)
        time.sleep(5)
        alive = [program.running for program in programs]
        trial.check("alive", alive, good=all(alive), must="all four")
        trial.check("log", dog.about(1), good=not dog.about(1), must="nothing about it")
        trial.check("the watchdog", dog.running, good=dog.running, must="runs")
    beyond = (total - session.memory) / MIB
    trial.note("A full slice and four contexts, by NVML", f"{beyond:.0f} MiB beyond the slice")


@case(
    "2a",
    35,
    "managed memory past the shim, beyond slice and margin: ended, and the log says so",
)
def watchdog_managed(trial: Trial) -> None:
    session = trial.session(share=SHARE)
    size = min(int((session.memory + MARGIN * MIB) * BEYOND), trial.gpu.memory // 2)
    with (
        watching("managed") as dog,
        start_bare(trial.gpu, "memory", "managed_only", size, env={JOB: "1"}) as program,
    ):
        program.next_message()
        own, used = trial.held(program.pid), trial.gpu.used()
        ended = program.wait(WITHIN)
        said = dog.about(1)
    shown = "not told" if own is None else f"{own / MIB:.0f} MiB"
    trial.note(
        "Managed memory past the shim",
        f"{size / MIB:.0f} MiB: NVML shows {shown} at the "
        f"process, {used / MIB:.0f} MiB of the GPU in use; "
        f"{'ended' if ended else 'not ended'}",
    )
    trial.check("ended", ended, good=ended, must=f"within {WITHIN:g} s")
    trial.check("log", said, good=bool(said), must="a line about it")

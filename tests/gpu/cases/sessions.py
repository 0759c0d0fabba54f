"""Processes of one session, and sessions side by side."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tests.gpu.case import Trial, case
from tests.gpu.machine import MIB
from tests.gpu.program import ProgramFailed
from tests.gpu.session import run_bare
from tests.gpu.watchdog import watching

SECONDS = 6
WARM = 4
"""Seconds in which the watchdog gets to know who computes; they do not count."""
MOST_OF_A_GPU = 0.75
"""Slice of the case with a killed program: with a context of it and one of the next it must fit."""


@case("2a", 15, "a second process gets only what the first has left")
def two_processes(trial: Trial) -> None:
    session = trial.session()
    with session.start("memory", "hold", 0.6) as first:
        got = first.next_message()["got"]
        trial.check("60 % for the first", got, good=got, must="True")
        got = session.run("memory", "hold", 0.6)["got"]
        trial.check("60 % for the second", got, good=not got, must="False")
        first.end()
    got = session.run("memory", "hold", 0.6)["got"]
    trial.check("60 % after the first", got, good=got, must="True")


@case("2a", 15, "two sessions hold 90 % of their slices at the same time")
def two_sessions(trial: Trial) -> None:
    with ExitStack() as stack:
        for number in (1, 2):
            program = stack.enter_context(trial.session(number).start("memory", "hold", 0.9))
            got = program.next_message()["got"]
            trial.check(f"90 % in session {number}", got, good=got, must="True")


@case("2a", 50, "four sessions of 25 % hold ≥ 99 % of what they were told, all at the same time")
def four_full_sessions(trial: Trial) -> None:
    with watching("four-full-sessions") as dog, ExitStack() as stack:
        programs = []
        for number in range(1, 5):
            session = trial.session(number)
            words = ("fill", "plain", 2 * trial.cap)
            programs.append(stack.enter_context(session.start("memory", *words)))
            seen = programs[-1].next_message()
            held = seen["held"] / seen["total"]
            trial.check(f"session {number}", f"{held:.3f}", good=held >= 0.99, must="≥ 0.99")
            trial.note(f"Four full sessions, number {number}", f"{held:.3f} of its slice")
        time.sleep(4)
        alive = [program.running for program in programs]
        trial.check("alive beside the watchdog", alive, good=all(alive), must="all of them")
        said = [line for line in dog.lines() if "ended" in line]
        trial.check("ended by the watchdog", said, good=not said, must="nothing")


@case("2a", 35, "three sessions of 33 %, busy at the same time, get ≥ 90 % of the GPU together")
def three_busy_sessions(trial: Trial) -> None:
    full = run_bare(trial.gpu, "launches", "busy", trial.seconds(SECONDS) / 2, 1000)["rate"]
    with watching("three-busy-sessions"), ExitStack() as stack:
        sessions = [trial.session(number, 0.2, 33) for number in (1, 2, 3)]
        words = ("launches", "busy", trial.seconds(SECONDS), 1000, trial.seconds(WARM))
        programs = [stack.enter_context(session.start(*words)) for session in sessions]
        for program in programs:
            program.next_message()
        for program in programs:
            program.go_on()
        shares = [100 * program.end()["rate"] / full for program in programs]
    shown = " + ".join(f"{share:.0f}" for share in shares)
    trial.check_time(
        "together", f"{sum(shares):.0f} % = {shown}", good=sum(shares) >= 90, must="≥ 90 %"
    )
    trial.note("Three busy sessions of 33 %", f"{shown} %")


@case(
    "2a", 40, "after a kill the next process has 90 % at once: no real out-of-memory, no wrong kill"
)
def killed(trial: Trial) -> None:
    session = trial.session(share=MOST_OF_A_GPU)
    with watching("killed") as dog:
        for _ in range(2):
            with session.start("memory", "hold", 0.9) as program:
                got = program.next_message()["got"]
                trial.check("90 % of the slice", got, good=got, must="True")
                program.kill()
            with session.start("memory", "at_once", 0.9) as program:
                seen = program.next_message()
                trial.check(
                    "the next process at once", seen["result"], good=not seen["result"], must="0"
                )
                time.sleep(2.5)
                alive = program.running
                trial.check("it lives", alive, good=alive, must="True")
        said = [line for line in dog.lines() if "ended" in line]
        trial.check("ended by the watchdog", said, good=not said, must="nothing")
    free = session.run("memory", "memory")["free"]
    trial.check("free afterwards", free, good=free == session.memory, must=str(session.memory))


@case("2a", 15, "what a program held that was killed while allocating is free again")
def killed_in_the_middle(trial: Trial) -> None:
    session = trial.session()
    with session.start("memory", "killed") as program:
        program.next_message()
        try:
            program.end()
        except ProgramFailed:
            print("     killed, as it should be")
        else:
            trial.check("the program", "ended", good=False, must="killed by itself")
    free = session.run("memory", "memory")["free"]
    trial.check("free afterwards", free, good=free == trial.cap, must=f"{trial.cap / MIB:.0f} MiB")

"""What launching costs, and that it works in the ways that are hard for a limiter."""

from __future__ import annotations

import os
import statistics

from tests.gpu.case import NotRun, Trial, case
from tests.gpu.machine import PROGRAMS
from tests.gpu.prepare import RATES
from tests.gpu.session import Session, run_bare

MODES = ("same:0", "streams:0", "grids:0")
ROUNDS = 3
MOST = {100: dict.fromkeys(MODES, 1.1), 99: {"same:0": 1.2, "streams:0": 2.0, "grids:0": 2.0}}
"""How many times as long a launch may take, by the share of the GPU."""
LONGEST_DEBT = 10.0
"""Seconds after which the past is forgiven."""
LONG = 4_000_000
"""Microseconds of a kernel that leads to more debt than that, at 25 %."""
ANNOUNCED = "waits for its share"


@case("1", 60, "without a limit < 1.1 times a bare launch; at 99 % < 1.2 on one stream, < 2 else")
def shapes(trial: Trial) -> None:
    session = trial.session()
    words = (PROGRAMS / "work.ptx", trial.seconds(0.5), os.environ["SLIPWAY_GPU_LOOPS"], *MODES)
    bare: list[dict[str, float]] = []
    inside: dict[int, list[dict[str, float]]] = {100: [], 99: []}
    for _ in range(ROUNDS):  # by turns, since a GPU heats up meanwhile
        bare.append(run_bare(trial.gpu, str(RATES), *words))
        for percent, seen in inside.items():
            session.grant(trial.cap, percent)
            seen.append(session.run(str(RATES), *words))
    for mode in MODES:
        alone = statistics.median(one[mode] for one in bare)
        for percent, seen in inside.items():
            found = statistics.median(one[mode] for one in seen)
            times, most = found / alone, MOST[percent][mode]
            what = f"{mode} at {percent} %"
            trial.check_time(what, f"{times:.2f} times", good=times < most, must=f"< {most}")
            trial.note(f"Launch, {what}", f"{found:.2f} µs, bare {alone:.2f} µs")


@case("1", 30, "20 strict captures while another thread launches: no error, every kernel runs")
def capture(trial: Trial) -> None:
    session = trial.session(percent=99)
    _, seen = trial.beside(session, "launches", "capture", 20)
    trial.check("errors of the capture", seen["wrong"], good=not seen["wrong"], must="none")
    trial.check("errors of the thread", seen["other"], good=not seen["other"], must="none")
    trial.check("its launches", seen["launched"], good=seen["launched"] > 0, must="> 0")
    good = seen["counted"] == seen["expected"] or (not trial.gpu.real and seen["counted"] is None)
    trial.check("kernels run", seen["counted"], good=good, must=str(seen["expected"]))


def wait_of_another(session: Session) -> tuple[float, str]:
    """How long a fresh process of the session waits for its first launch, and what it says."""
    with session.start("launches", "first") as program:
        return program.end()["seconds"], program.errors()


@case(
    "1",
    60,
    f"after a kernel of 4 s at 25 % a new process waits 3 to {LONGEST_DEBT:g} s, and says so",
)
def debt(trial: Trial) -> None:
    session = trial.session(percent=25)
    trial.bare("launches", "debt", LONG // 10)
    seen = session.run("launches", "debt", LONG)
    trial.check_time(
        "the kernel", f"{seen['seconds']:.1f} s", good=2 < seen["seconds"] < 8, must="about 4 s"
    )
    waited, said = wait_of_another(session)
    trial.check(
        "waited",
        f"{waited:.1f} s",
        good=3 <= waited <= LONGEST_DEBT + 0.5,
        must=f"3 to {LONGEST_DEBT:g} s",
    )
    trial.check("said", said.strip()[-200:], good=ANNOUNCED in said, must=f"“… {ANNOUNCED} …”")
    trial.note("Wait after a kernel of 4 s at 25 %", f"{waited:.1f} s")
    waited, _ = wait_of_another(session)
    trial.check("the next one waited", f"{waited:.2f} s", good=waited < 1, must="< 1 s")


@case("1", 20, "launches on a green context's stream: no error, < 20 µs each at 99 %")
def green(trial: Trial) -> None:
    session = trial.session(percent=99)
    bare, seen = trial.beside(session, "launches", "green", 5000)
    if lacks := bare.get("lacks"):
        raise NotRun(f"this driver has no {', '.join(lacks)}")
    trial.check("errors", seen["wrong"], good=not seen["wrong"], must="none")
    trial.check_time("a launch", f"{seen['us']:.1f} µs", good=seen["us"] < 20, must="< 20 µs")
    trial.note(
        "Launch on a green context's stream", f"{seen['us']:.1f} µs, bare {bare['us']:.1f} µs"
    )

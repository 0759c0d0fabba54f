"""Whether programs find the shim, however they look, and can be linked against it."""

from __future__ import annotations

import os
import subprocess

from tests.gpu.case import Trial, case
from tests.gpu.machine import PROGRAMS, WORK


@case("1", 30, "every look-up answers the shim's function, or exactly the driver's")
def lookups(trial: Trial) -> None:
    session = trial.session()
    seen = session.run("lookups", session.directory / "driver" / "libcuda.so.1")
    must = "none: neither refused nor of another version nor past the limits"
    trial.check("wrong answers", seen["wrong"], good=not seen["wrongs"], must=must)
    trial.check("found by the driver", seen["found"], good=seen["found"] > 300, must="> 300")
    trial.check("answered by the shim", seen["wrapped"], good=seen["wrapped"] > 60, must="> 60")
    expected = os.path.realpath(session.shim / "libcuda.so.1")
    trial.check(
        "the library", seen["shim"], good=os.path.realpath(seen["shim"]) == expected, must=expected
    )
    trial.note("Look-ups of functions", f"{seen['asked']}, {seen['wrongs']} wrong")


def first_error(text: str) -> str:
    """The first of the linker's complaints."""
    lines = [line for line in text.splitlines() if "undefined" in line or "error" in line]
    return lines[0] if lines else text.strip()


@case(
    "2a", 20, "gcc links programs and libraries against the shim, and they run", programs=("gcc",)
)
def linking(trial: Trial) -> None:
    session = trial.session()
    source, library = str(PROGRAMS / "linked.c"), [f"-L{session.shim}", "-l:libcuda.so.1"]
    shared = ["-shared", "-fPIC", "-Wl,--no-undefined"]
    wanted = {
        "a program": [source, "-o", str(WORK / "linked"), *library],
        "a library, nothing undefined": [source, "-o", str(WORK / "linked.so"), *shared, *library],
    }
    for what, words in wanted.items():
        done = subprocess.run(["gcc", *words], capture_output=True, text=True, check=False)
        said = first_error(done.stderr) or "links"
        trial.check(what, said, good=not done.returncode, must="links")
    if not trial.wrong:
        seen = session.run(str(WORK / "linked"))
        trial.check(
            "total memory that it sees",
            seen["total"],
            good=seen["total"] == trial.cap,
            must=f"the slice, {trial.cap}",
        )

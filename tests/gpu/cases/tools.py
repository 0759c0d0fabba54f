"""Debuggers, checkers and MPS."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.gpu.case import FailsBare, NotRun, Trial, case
from tests.gpu.cases.seen import unshare
from tests.gpu.machine import PROGRAMS
from tests.gpu.prepare import RATES
from tests.gpu.program import Program, ProgramFailed

CONTROL = "nvidia-cuda-mps-control"
STARTING = 10.0


def _under(trial: Trial, tool: list[str]) -> None:
    """The program of rates.c under a tool: without the shim, then in a session."""
    words = (PROGRAMS / "work.ptx", 0.2, 1, "same:0", "graph:1")
    session = trial.session(percent=99)
    try:
        with Program(str(RATES), words, trial.gpu.driver.environment, tool) as bare:
            bare.end()
    except ProgramFailed as error:
        raise FailsBare(str(error)) from error
    with session.start(str(RATES), *words, before=tool) as program:
        seen = program.end()
    trial.check("launches", seen, good=seen["same:0"] > 0, must="the same program's line")


@case("2c", 45, "cuda-gdb runs a program in the session to its end", programs=("cuda-gdb",))
def cuda_gdb(trial: Trial) -> None:
    _under(trial, ["cuda-gdb", "-batch", "-ex", "run", "--args"])


@case(
    "2c",
    50,
    "compute-sanitizer runs a program in the session, without errors",
    programs=("compute-sanitizer",),
)
def sanitizer(trial: Trial) -> None:
    _under(trial, ["compute-sanitizer", "--error-exitcode", "9"])


@contextlib.contextmanager
def _mps(trial: Trial, folder: Path) -> Iterator[dict[str, str]]:
    """NVIDIA's MPS with sockets and logs in a folder; variables by which clients find it."""
    variables = {
        **trial.gpu.driver.environment,
        "CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"),
        "CUDA_MPS_LOG_DIRECTORY": str(folder / "log"),
    }
    for name in ("pipe", "log"):
        (folder / name).mkdir()
    settings = os.environ | variables
    with (folder / "said").open("wb") as said:
        control = subprocess.Popen([CONTROL, "-f"], env=settings, stdout=said, stderr=said)
    try:
        until = time.monotonic() + STARTING
        while not (folder / "pipe/control").exists() and time.monotonic() < until:
            if control.poll() is not None:
                raise NotRun(f"{CONTROL}: {(folder / 'said').read_text().strip()}")
            time.sleep(0.1)
        yield variables
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([CONTROL], input=b"quit\n", env=settings, check=False, timeout=10)
        control.kill()
        control.wait()


def _client(variables: dict[str, str], *before: str) -> str:
    """What a client of MPS says; "works" if it does."""
    try:
        with Program("launches", ("first",), variables, before) as program:
            program.end()
    except ProgramFailed as error:
        return str(error)
    return "works"


@case(
    "2a",
    45,
    "MPS: a client works, also with an IPC namespace of its own and the daemon's /dev/shm",
    programs=(CONTROL, "unshare"),
)
def mps(trial: Trial) -> None:
    as_session = unshare("-i")
    apart = [*unshare("-im"), "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
    folder = Path(tempfile.mkdtemp(prefix="slipway-mps-"))  # a socket's path must be short
    try:
        with _mps(trial, folder) as variables:
            shared = _client(variables)
            if shared != "works":
                raise FailsBare(f"MPS does not work here at all: {shared}")
            session = _client(variables, *as_session)
            alone = _client(variables, *apart)
            again = _client(variables)
        text = "a client in an IPC namespace of its own, with the daemon's /dev/shm"
        trial.check(text, session, good=session == "works", must="works")
        trial.note("MPS, client with its own IPC namespace and /dev/shm", alone.splitlines()[0])
        trial.check("a client after that", again, good=again == "works", must="works")
    finally:
        shutil.rmtree(folder, ignore_errors=True)

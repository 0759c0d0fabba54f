"""What all cases need: the shims of the sessions, a compiled program, and this GPU's speed."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from tests.gpu.machine import PROGRAMS, PYTHON, WORK, Gpu
from tests.gpu.program import ProgramFailed
from tests.gpu.session import build_commands, retire_sessions, run_bare

LIMIT = 60
"""Seconds that this may take."""
SESSIONS = 4
RATES = WORK / "rates"


class PrepareFailed(Exception):
    """The suite cannot run on this machine; the text says what is missing."""


def prepare(sessions: int = SESSIONS) -> tuple[Gpu, dict[str, str]]:
    """The GPU, and variables for the programs. Raises PrepareFailed."""
    lacks = [name for name in ("gcc", "make", "readelf", PYTHON) if not shutil.which(name)]
    if lacks:
        raise PrepareFailed(f"{', '.join(lacks)}: not installed")
    try:
        gpu = Gpu.find()
    except FileNotFoundError as error:
        raise PrepareFailed(f"it needs an NVIDIA GPU: {error}") from error
    WORK.mkdir(parents=True, exist_ok=True)
    commands = [["gcc", "-std=gnu11", "-O2", "-o", str(RATES), str(PROGRAMS / "rates.c"), "-ldl"]]
    for number in range(1, sessions + 1):
        commands += build_commands(number)
    with ThreadPoolExecutor() as pool:
        for failed in filter(None, pool.map(_build, commands)):
            raise PrepareFailed(failed)
    retire_sessions()
    try:
        found = run_bare(gpu, "launches", "calibrate")
    except ProgramFailed as error:
        raise PrepareFailed(f"CUDA does not work here without Slipway: {error}") from error
    return gpu, {"SLIPWAY_GPU_LOOPS": str(found["loops"])}


def _build(command: list[str]) -> str:
    """Why it failed; "" if it did not."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LIMIT - 10
        )
    except subprocess.TimeoutExpired:
        return f"{' '.join(command)}: not done after {LIMIT - 10} s"
    return f"{' '.join(command)}: {done.stdout}{done.stderr}" if done.returncode else ""

"""A session's slice of a GPU without Slurm: the shim in front of this machine's own driver."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from tests.gpu.machine import MIB, PYTHON, ROOT, WORK, Gpu, ask_smi
from tests.gpu.program import JOB, Program

JOBS = WORK / "jobs"
"""As /run/slipway/gpu/jobs: a folder for each session, which the watchdog follows."""
FILES = ("slice", "load", "usage.json")
"""Of a session, by root and by its watchdog."""


class Session:
    """A slice and the shim that enforces it; sessions are numbered from 1."""

    def __init__(self, number: int, gpu: Gpu) -> None:
        self.gpu = gpu
        self.number = number
        self.directory = JOBS / str(number)
        self.shim = WORK / "shims" / str(number)
        self.memory = 0
        real = self.directory / "driver"
        real.mkdir(parents=True, exist_ok=True)
        for library, path in gpu.driver.libraries.items():
            (real / library).unlink(missing_ok=True)
            (real / library).symlink_to(path)
        for command in build_commands(number):
            subprocess.run(command, check=True)

    def grant(self, memory: int, percent: int) -> Session:
        """Set another slice with nothing used; 0 bytes and 100 % mean no limits."""
        self.memory = memory
        gpu = f"gpu={self.gpu.uuid}\nmemory={memory}\nsm={percent}\n"
        (self.directory / "slice").write_text(f"version=1\ncompute=limiter\n{gpu}")
        (self.directory / "counters").write_bytes(bytes(MIB))
        return self

    def retire(self) -> None:
        """It has no slice any more, and the watchdog forgets it."""
        for name in FILES:
            (self.directory / name).unlink(missing_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which programs find the shim. (Sessions bind it over the libraries.)"""
        path = f"{self.shim}:{self.gpu.driver.environment['LD_LIBRARY_PATH']}".rstrip(":")
        return {
            "LD_LIBRARY_PATH": path,
            "TRITON_LIBCUDA_PATH": str(self.shim),
            JOB: str(self.number),
        }

    def smi(self, fields: str) -> list[str]:
        """nvidia-smi's output inside the session."""
        return ask_smi(self.gpu.driver, fields, **self.environment)

    def start(
        self,
        program: str,
        *words: object,
        before: Sequence[str] = (),
        limit: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Program:
        """Start one of programs/ inside; `before` is a command that starts it."""
        return Program(program, words, {**self.environment, **(env or {})}, before, limit)

    def run(
        self, program: str, *words: object, env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The same, run to its end; its last message."""
        with self.start(program, *words, env=env) as started:
            return started.end()


def build_commands(number: int) -> list[list[str]]:
    """What builds a session's shim; again it does nothing."""
    out, directory = WORK / "shims" / str(number), JOBS / str(number)
    words = [f"OUT={out}", f"DIRECTORY={directory}", "--silent", f"-j{os.cpu_count() or 1}"]
    return [["make", "-C", str(ROOT / "gres/shim"), *words]]


def start_bare(
    gpu: Gpu, program: str, *words: object, env: Mapping[str, str] | None = None
) -> Program:
    """Start one of programs/ with this machine's own driver, without the shim."""
    return Program(program, words, {**gpu.driver.environment, **(env or {})})


def run_bare(
    gpu: Gpu, program: str, *words: object, env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The same, run to its end; its last message."""
    with start_bare(gpu, program, *words, env=env) as started:
        return started.end()


def retire_sessions() -> None:
    """No session has a slice: the watchdog follows only those that get one after this."""
    for name in FILES:
        for old in JOBS.glob(f"[0-9]*/{name}"):
            old.unlink()


def has(framework: str) -> bool:
    """Whether the programs' Python has a framework."""
    code = f"""
import importlib.util, sys
try:
    sys.exit(importlib.util.find_spec({framework!r}) is None)
except ModuleNotFoundError:
    sys.exit(1)
"""
    return subprocess.run([PYTHON, "-c", code], check=False).returncode == 0

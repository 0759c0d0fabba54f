"""What a case of this suite is, and what it is given."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.node.gpu.nvml import NvmlError
from tests.gpu.machine import Gpu
from tests.gpu.program import ProgramFailed
from tests.gpu.session import Session, has, run_bare

CAP = 0.25
"""The slice of most cases, of a whole GPU: 0.5 fGPU where 1 fGPU is half a GPU."""
SMALL = 8 << 30
"""Bytes of the slice of cases that allocate most of it hundreds of times. The driver takes time for
each GiB, so with a part of the GPU their time would grow with its memory.
"""
MODULES = "lookups launches memory sessions seen watchdog sharing pytorch others tools".split()
"""The modules of cases/."""


class NotRun(Exception):
    """The case cannot be run here; the text says what is missing."""


class FailsBare(Exception):
    """The program of the case fails without the shim, too."""


@dataclass(frozen=True)
class Case:
    """One case; `must` says what must be seen."""

    name: str
    step: str
    limit: int
    """Seconds, after which it is killed with everything that it started."""
    must: str
    run: Callable[[Trial], None]
    frameworks: tuple[str, ...] = ()
    """Modules that the Python of the programs must have."""
    programs: tuple[str, ...] = ()
    """Programs that must be installed."""

    def missing(self) -> str:
        """What it needs and this machine lacks; "" if nothing."""
        lacks = [f"the Python module {name}" for name in self.frameworks if not has(name)]
        lacks += [f"the program {name}" for name in self.programs if not shutil.which(name)]
        return f"missing: {', '.join(lacks)}" if lacks else ""


_CASES: list[Case] = []


def case(
    step: str,
    limit: int,
    must: str,
    *,
    frameworks: tuple[str, ...] = (),
    programs: tuple[str, ...] = (),
) -> Callable[[Callable[[Trial], None]], Callable[[Trial], None]]:
    """Add a function to the suite, as a case named like it."""

    def add(run: Callable[[Trial], None]) -> Callable[[Trial], None]:
        name = run.__name__.replace("_", "-")
        _CASES.append(Case(name, step, limit, must, run, frameworks, programs))
        return run

    return add


def all_cases() -> list[Case]:
    """All cases, in the order of MODULES and of each module."""
    for module in MODULES:
        importlib.import_module(f"tests.gpu.cases.{module}")
    return _CASES


@dataclass
class Trial:
    """One run of a case: this machine's GPU, sessions, and what was seen."""

    gpu: Gpu
    figures: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def cap(self) -> int:
        """Bytes of the usual slice."""
        return self.gpu.part(CAP)

    def seconds(self, usual: float) -> float:
        """How long something is measured; less where durations mean nothing."""
        return usual if self.gpu.real else usual / 4

    def session(self, number: int = 1, share: float = CAP, percent: int = 100) -> Session:
        """A session with a new slice."""
        return Session(number, self.gpu).grant(self.gpu.part(share), percent)

    def small_session(self) -> Session:
        """Session 1 with a new slice: the usual one, or SMALL if that is less."""
        return Session(1, self.gpu).grant(min(self.cap, SMALL), 100)

    def has(self, framework: str) -> bool:
        """Whether the programs' Python has a framework."""
        return has(framework)

    def note(self, name: str, value: str) -> None:
        """A figure for the table."""
        self.figures[name] = value
        print(f"     {name}: {value}", flush=True)

    def check(self, what: str, found: object, *, good: bool, must: str) -> None:
        """Something that must be so. The case goes on, to see the rest as well."""
        print(f"  {'ok' if good else '!!'} {what}: {found} ({must})", flush=True)
        if not good:
            self.wrong.append(f"{what}: {found}, must be: {must}")

    def check_time(self, what: str, found: object, *, good: bool, must: str) -> None:
        """The same for durations, which mean nothing on the stand-in driver."""
        self.check(what, found, good=good or not self.gpu.real, must=must)

    def bare(
        self, program: str, *words: object, env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """A program without the shim. If it fails there, the shim is not to blame."""
        try:
            return run_bare(self.gpu, program, *words, env=env)
        except ProgramFailed as error:
            raise FailsBare(str(error)) from error

    def beside(
        self,
        session: Session,
        program: str,
        *words: object,
        env: Mapping[str, str] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """A program without the shim, then in a session: both last messages."""
        bare = self.bare(program, *words, env=env)
        return bare, session.run(program, *words, env=env)

    def same(
        self,
        session: Session,
        program: str,
        *words: object,
        env: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """The same, and both must find the same `result`. The session's message."""
        bare, inside = self.beside(session, program, *words, env=env)
        self.check(
            "result",
            inside["result"],
            good=inside["result"] == bare["result"],
            must=f"as without the shim: {bare['result']}",
        )
        return inside

    def held(self, pid: int) -> int | None:
        """Bytes of a process by NVML of the real driver; None if it does not tell."""
        try:
            return self.gpu.processes().get(pid) or None
        except NvmlError as error:
            raise NotRun(f"NVML does not list processes here: {error}") from error

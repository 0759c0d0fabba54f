"""Runs cases one after the other, each with a limit of its own, and says what was seen."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.gpu.case import Case
from tests.gpu.inside import BARE_TOO, FAILED, NOT_RUN, PASSED
from tests.gpu.machine import LOGS, OUT, ROOT, WORK, Gpu
from tests.gpu.program import BARE
from tests.gpu.session import retire_sessions
from tests.gpu.steps import MOST

MARK = "SLIPWAY_GPU_CASE"
"""The variable by which a case's processes are known, also those that left its process group."""
RESERVE = 10
"""Seconds of a step in which no case is started any more."""
KEPT = 20_000
"""Characters of a case's output that are kept in the JSON."""


@dataclass
class Result:
    """What became of a case."""

    name: str
    status: str
    why: str
    seconds: float
    figures: dict[str, str] = field(default_factory=dict)
    output: str = ""

    def __str__(self) -> str:
        why = self.why.replace("\n", "\n" + " " * 12)
        return f"{self.status:>14}  {self.name}, {self.seconds:.1f} s" + (
            f"\n            {why}" if why else ""
        )


class Runner:
    """One step."""

    def __init__(self, step: str, most: float = MOST) -> None:
        self._step = step
        self._until = time.monotonic() + most

    def run(self, gpu: Gpu, cases: Sequence[Case], settings: Mapping[str, str]) -> int:
        """The exit status: 0 if at least one case passed and none failed."""
        print(f"step {self._step}: {gpu.name}, {gpu.memory >> 20} MiB, driver {gpu.version}")
        if not gpu.real:
            print("No GPU: a stand-in driver, so durations mean nothing.")
        results = []
        for one in cases:
            results.append(self._run_one(one, settings))
            print(results[-1], flush=True)
            self._write(gpu, results)
        _summarise(results)
        seen = {result.status for result in results}
        return int(FAILED in seen or PASSED not in seen)

    def _run_one(self, one: Case, settings: Mapping[str, str]) -> Result:
        left = self._until - RESERVE - time.monotonic()
        if left < one.limit / 4:
            return Result(one.name, NOT_RUN, "no time left in this step", 0)
        retire_sessions()
        limit = min(one.limit, left)
        began = time.monotonic()
        result = run_limited(one.name, limit, settings)
        result.seconds = round(time.monotonic() - began, 1)
        return result

    def _write(self, gpu: Gpu, results: Sequence[Result]) -> None:
        """After each case, so that a step that is cut off has left what it knew."""
        OUT.mkdir(parents=True, exist_ok=True)
        seen = {
            "step": self._step,
            "gpu": gpu.name,
            "memory": gpu.memory,
            "driver": gpu.version,
            "standin": not gpu.real,
            "linux": platform.release(),
            "cases": [asdict(result) for result in results],
        }
        (OUT / f"step-{self._step}.json").write_text(json.dumps(seen, indent=1) + "\n")


def run_limited(name: str, limit: float, settings: Mapping[str, str]) -> Result:
    """A case in a process of its own; after the limit it is killed with all that it started."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log, found = LOGS / f"{name}.log", WORK / f"{name}.json"
    found.unlink(missing_ok=True)
    mark = f"{name}-{os.getpid()}"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu", "--here", name, str(found)],
            cwd=ROOT,
            env={**os.environ, **settings, MARK: mark, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
        try:
            process.wait(limit)
            hung = False
        except subprocess.TimeoutExpired:
            hung = True
        kill_all(process.pid, mark)
        process.wait()
    output = log.read_text(errors="replace")[-KEPT:]
    if hung:
        return _hung(name, limit, output)
    try:
        seen = json.loads(found.read_text())
    except (OSError, ValueError):
        why = f"its process ended with {process.returncode}: {output[-500:]}"
        return Result(name, FAILED, why, 0, output=output)
    return Result(name, seen["status"], seen["why"], 0, seen["figures"], output)


def _hung(name: str, limit: float, output: str) -> Result:
    """What it was doing says whose fault it is."""
    lines = [line.strip() for line in output.splitlines() if line.startswith("  ")]
    last = lines[-1] if lines else "nothing yet"
    status = BARE_TOO if last.startswith("..") and BARE in last else FAILED
    return Result(name, status, f"killed after {limit:.0f} s; last seen: {last}", 0, output=output)


def kill_all(group: int, mark: str) -> None:
    """The processes of a case: its group, and whoever left that."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    wanted = f"{MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def _summarise(results: Sequence[Result]) -> None:
    counts = Counter(result.status for result in results)
    for status in (NOT_RUN, BARE_TOO, FAILED):
        for result in results:
            if result.status == status:
                print(f"{status}: {result.name}: {result.why.splitlines()[0]}")
    said = ", ".join(f"{number} {status}" for status, number in counts.items())
    print(f"{said}; {sum(result.seconds for result in results):.0f} s")

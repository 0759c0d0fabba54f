"""A running program of programs/, and what it says."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from tests.gpu.machine import PROGRAMS, PYTHON

SETTINGS = {"PYTHONDONTWRITEBYTECODE": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""CUDA and nvidia-smi agree on which GPU is the first."""
JOB = "SLIPWAY_GPU_JOB"
"""The variable that says to which session a process belongs. (Root's watchdog asks the cgroup.)"""
BARE = "without the shim"
TAIL = 12
"""Lines of a program's last words that are shown."""


class ProgramFailed(Exception):
    """It ended otherwise than it should."""


class Program:
    """A running program. It prints findings as lines of JSON; at a pause it waits for go_on.

    A case has a time limit of its own and is killed with all of its programs, so only the bench
    gives a limit here, after which the program is killed.
    """

    def __init__(
        self,
        program: str,
        words: Sequence[object],
        environment: Mapping[str, str],
        before: Sequence[str] = (),
        limit: float | None = None,
    ) -> None:
        path = PROGRAMS / f"{program}.py"
        command = [PYTHON, str(path)] if path.exists() else [program]
        self.name = " ".join([program.rpartition("/")[2], *map(str, words)])
        where = environment.get(JOB)
        print(f"  .. {self.name} ({f'session {where}' if where else BARE})", flush=True)
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed by __exit__
        self._process = subprocess.Popen(
            [*before, *command, *map(str, words)],
            env={**os.environ, **SETTINGS, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            errors="replace",
        )
        self._timer = threading.Timer(limit or 0, self._process.kill)
        self._timer.daemon = True
        if limit:
            self._timer.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._errors.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def next_message(self) -> dict[str, Any]:
        """The program's next message."""
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("{"):
                output: dict[str, Any] = json.loads(line)
                return output
        raise self._failure()

    def go_on(self) -> None:
        """Continue after a pause."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # it was not waiting, and has ended
            self._process.stdin.write("\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """As kill -9."""
        self._timer.cancel()
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def end(self) -> dict[str, Any]:
        """Wait for the end; its last message."""
        self.go_on()
        assert self._process.stdout
        output = [line for line in self._process.stdout if line.startswith("{")]
        if self._process.wait() or not output:
            raise self._failure()
        last: dict[str, Any] = json.loads(output[-1])
        return last

    def wait(self, seconds: float) -> bool:
        """Whether it ends by itself."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def errors(self) -> str:
        """What it wrote to stderr so far."""
        self._errors.seek(0)
        return self._errors.read()

    def _failure(self) -> ProgramFailed:
        status = self._process.wait()
        said = "\n".join(self.errors().strip().splitlines()[-TAIL:])
        return ProgramFailed(f"`{self.name}` ended with {status}: {said}".rstrip(": "))

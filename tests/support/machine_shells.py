"""Runs commands on a cluster's machines through shells that stay open.

Entering a container takes a third of a second and half as much CPU, and the tests do so thousands
of times. Therefore a small agent stays in each machine, reads a command from its standard input and
returns its result. There are as many agents as concurrent commands.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

# Files instead of pipes: a command's background processes may keep its output open.
AGENT = """
import base64, json, subprocess, sys, tempfile
for line in sys.stdin.buffer:
    asked = json.loads(line)
    print("started", flush=True)
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as wrong:
        try:
            done = subprocess.Popen(asked["argv"], stdin=subprocess.PIPE, stdout=said, stderr=wrong)
            done.communicate(asked["stdin"].encode())
            code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        except OSError as error:
            wrong.write(str(error).encode())
            code = 127
        said.seek(0)
        wrong.seek(0)
        found = [base64.b64encode(file.read()).decode() for file in (said, wrong)]
    print(code, *found, sep=",", flush=True)
"""
KILLED = 137


class Gone(Exception):
    """The machine went away; `started` says whether the command may have started."""

    def __init__(self, started: bool) -> None:
        super().__init__("the machine went away")
        self.started = started


class Shell:
    """An agent in a machine, for one command at a time."""

    def __init__(self, enter: Sequence[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [*enter, "python3", "-u", "-c", AGENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        self._read = b""

    def run(
        self, argv: Sequence[str], stdin: str, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command; raises Gone, or TimeoutExpired, after which the shell is unusable."""
        deadline, started = time.monotonic() + seconds, False
        asked = json.dumps({"argv": list(argv), "stdin": stdin}) + "\n"
        try:
            assert self._process.stdin
            self._process.stdin.write(asked.encode())
            self._process.stdin.flush()
            started = self._line(deadline) == b"started"
            code, output, errors = self._line(deadline).split(b",")
        except TimeoutError:
            raise subprocess.TimeoutExpired(list(argv), seconds) from None
        except (OSError, ValueError):
            raise Gone(started) from None
        return subprocess.CompletedProcess(list(argv), int(code), _text(output), _text(errors))

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout
        while b"\n" not in self._read:
            left = max(deadline - time.monotonic(), 0)
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise TimeoutError
            part = os.read(self._process.stdout.fileno(), 1 << 20)
            if not part:
                raise ConnectionError
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        return line

    def close(self) -> None:
        """Kill the agent."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            with contextlib.suppress(OSError):  # output that could not be sent
                stream.close()


def _text(data: bytes) -> str:
    """Decode as subprocess does in text mode; names of jobs and files can be any bytes."""
    text = base64.b64decode(data).decode(errors="backslashreplace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Shells:
    """The open shells of this process, by machine."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, ...], list[Shell]] = defaultdict(list)
        self._lock = threading.Lock()

    def run(
        self,
        enter: Sequence[str],
        environment: dict[str, str],
        argv: Sequence[str],
        **options: Any,
    ) -> subprocess.CompletedProcess[str] | None:
        """Run a command in a machine that `enter` leads into. None if it cannot be entered."""
        place = (environment["COMPOSE_PROJECT_NAME"], *enter)
        for _ in range(2):
            with self._lock:
                shell = self._idle[place].pop() if self._idle[place] else None
            shell = shell or Shell(enter, environment)
            try:
                done = shell.run(argv, **options)
            except Gone as gone:
                shell.close()
                if gone.started:
                    return subprocess.CompletedProcess(list(argv), KILLED, "", str(gone))
            except BaseException:
                shell.close()
                raise
            else:
                with self._lock:
                    self._idle[place].append(shell)
                return done
        return None

    def close(self) -> None:
        """Close all shells."""
        with self._lock:
            for shell in [shell for shells in self._idle.values() for shell in shells]:
                shell.close()
            self._idle.clear()


SHELLS = Shells()
atexit.register(SHELLS.close)

"""Queries the process with pyslurm (child.py), and ends it when it does not answer."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from portal.errors import Unavailable

log = logging.getLogger(__name__)

CHILD = (sys.executable, "-I", str(Path(__file__).with_name("child.py")))
RETRY_SECONDS = 60.0
"""Seconds until pyslurm is tried again after it could not be used."""
_JOBS = re.compile(r"jobs ([0-9]{1,9})")
MOST_BYTES = 256 << 20
"""Maximum of one reply; a job has about 200."""


class PySlurmProcess:
    """The queue as squeue prints it, by pyslurm in a process that is started on demand."""

    def __init__(self, seconds: float, argv: Sequence[str] = CHILD) -> None:
        self._seconds = seconds
        self._argv = argv
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._not_before = 0.0
        self.problem = ""
        """Why pyslurm could not be used when it was last tried."""

    def queue(self) -> str | None:
        """squeue's lines; None, with a log entry, if pyslurm cannot be used here.

        Raises Unavailable when Slurm does not answer in time.
        """
        with self._lock:
            if time.monotonic() < self._not_before:
                return None
            first, _, lines = self._ask().partition("\n")
            if _JOBS.fullmatch(first):
                self.problem = ""
                return lines
            self.end()
            word, _, detail = first.partition(" ")
            if word == "down":
                raise Unavailable(f"Slurm does not answer: {detail}")
            self._not_before = time.monotonic() + RETRY_SECONDS
            self.problem = detail or "the process with pyslurm ended"
            log.warning("slurm.reader: %s; squeue is used", self.problem)
            return None

    def end(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def _ask(self) -> str:
        """The reply to one request; "" if the process ended."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        process = self._process
        assert process.stdin is not None  # noqa: S101  # a pipe
        # A process that has already reported why it cannot be used no longer reads.
        with contextlib.suppress(OSError):
            process.stdin.write(b"jobs\n")
        return self._read(process, time.monotonic() + self._seconds)

    def _read(self, process: subprocess.Popen[bytes], deadline: float) -> str:
        assert process.stdout is not None  # noqa: S101  # a pipe
        answer, lines, announced = bytearray(), 0, 0
        while lines <= announced:
            remaining = deadline - time.monotonic()
            ready = remaining > 0 and select.select([process.stdout], [], [], remaining)[0]
            if not ready or len(answer) > MOST_BYTES:
                self.end()
                raise Unavailable("Slurm does not answer: pyslurm took too long.")
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                return answer.decode(errors="replace") if answer.startswith(b"unusable ") else ""
            answer += piece
            new = piece.count(b"\n")
            if new and not lines:
                announced = _announced(answer)
            lines += new
        return answer.decode(errors="replace")


def _announced(answer: bytearray) -> int:
    """The number of lines that follow the first one."""
    match = _JOBS.fullmatch(answer.partition(b"\n")[0].decode(errors="replace"))
    return int(match[1]) if match else 0

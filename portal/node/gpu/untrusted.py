"""Read text that users can influence, in root's programs on the nodes.

Processes, jobs, files and cgroups have names of bytes, which reach root in /proc, in cgroups and in
the output of Slurm's commands. Such text is split at the newline alone, since the kernel and Slurm
escape only that one (`str.splitlines` splits at eleven characters), and any byte can be decoded.
tests/root_reads.toml lists all sources, their writers, and the effects of malformed text.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Generic, TypeVar

LONGEST = 1000
"""Characters of a text in a message."""
Value = TypeVar("Value")


class CommandError(Exception):
    """A command could not be run, or did not end in time."""


@dataclass(frozen=True)
class Completed:
    """Exit status and output of a completed command."""

    code: int
    stdout: str
    stderr: str


def decode(data: bytes) -> str:
    """Decode any bytes: those that are not UTF-8 become lone surrogates. Never fails."""
    return data.decode("utf-8", "surrogateescape")


def read(file: Path) -> str:
    """The text of a file; raises OSError."""
    return decode(file.read_bytes())


def lines(text: str) -> list[str]:
    """Split a text into lines, at newlines alone."""
    parts = text.split("\n")
    return parts[:-1] if parts[-1] == "" else parts


def fields(text: str) -> dict[str, str]:
    """Parse lines "key: value"; the last line of a key counts, since names come first."""
    pairs = (line.partition(":") for line in lines(text))
    return {key: value.strip(" \t") for key, colon, value in pairs if colon}


def run(argv: Sequence[str], seconds: float) -> Completed:
    """Run a command to its end; raises CommandError."""
    try:
        process = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{argv[0]}: {error}") from error
    return Completed(process.returncode, decode(process.stdout), decode(process.stderr))


def printable(text: str) -> str:
    """Format a text for a log or a terminal: one bounded line, non-printable characters escaped."""
    safe = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:LONGEST])
    return safe + ("…" if len(text) > LONGEST else "")


class TimedQuery(Generic[Value]):
    """Run queries about processes in threads, and wait only briefly for each.

    A query may block for ever: a process can keep the lock of its own mappings or mounts while a
    page waits for a file system of its user.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: set[int] = set()

    def __call__(self, pid: int, query: Callable[[], Value]) -> Value | None:
        """Return the answer; None at a timeout, an error, or while an earlier query waits."""
        if pid in self._waiting:
            return None
        answers: list[Value] = []

        def run_query() -> None:
            try:
                answers.append(query())
            except Exception:
                return  # whatever failed, there is no answer
            finally:
                self._waiting.discard(pid)

        self._waiting.add(pid)
        thread = Thread(target=run_query, daemon=True)
        thread.start()
        thread.join(self._seconds)
        return answers[0] if answers else None

"""Text that users can write into or name: how root's programs on nodes read it.

Processes, jobs, files and cgroups have names of bytes, which reach root in /proc, in cgroups and in
what Slurm's commands print. Such text is divided at the newline alone, since the kernel and Slurm
escape only that one (`str.splitlines` divides at eleven characters), and any byte can be decoded.
tests/root_reads.toml lists what is read, who writes it, and what an odd one costs whom.
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
    """A command could not be run, or was not over in time."""


@dataclass(frozen=True)
class Completed:
    """What a command that ran to its end printed, and its exit status."""

    code: int
    stdout: str
    stderr: str


def decode(data: bytes) -> str:
    """Decode any bytes: those that are no UTF-8 become lone surrogates. Never fails."""
    return data.decode("utf-8", "surrogateescape")


def read(file: Path) -> str:
    """The text of a file; raises OSError."""
    return decode(file.read_bytes())


def lines(text: str) -> list[str]:
    """The lines of a text, which end at a newline and at nothing else."""
    found = text.split("\n")
    return found[:-1] if found[-1] == "" else found


def fields(text: str) -> dict[str, str]:
    """The values of lines "key: value"; of a key's lines the last, since names come first."""
    pairs = (line.partition(":") for line in lines(text))
    return {key: value.strip(" \t") for key, colon, value in pairs if colon}


def run(argv: Sequence[str], seconds: float) -> Completed:
    """Run a command to its end; raises CommandError."""
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{argv[0]}: {error}") from error
    return Completed(done.returncode, decode(done.stdout), decode(done.stderr))


def printable(text: str) -> str:
    """A text for a log or a terminal: one line, bounded, what cannot be printed is escaped."""
    safe = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:LONGEST])
    return safe + ("…" if len(text) > LONGEST else "")


class Patient(Generic[Value]):
    """Asks about processes what may never be answered, and waits only briefly for the answer.

    A process can keep the lock of its own mappings or mounts, while a page waits for a file system
    of its user's.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: set[int] = set()

    def __call__(self, pid: int, question: Callable[[], Value]) -> Value | None:
        """The answer; None if there is none soon, or an earlier question still waits."""
        if pid in self._waiting:
            return None
        found: list[Value] = []

        def ask() -> None:
            try:
                found.append(question())
            except Exception:
                return  # whatever it is: there is no answer
            finally:
                self._waiting.discard(pid)

        self._waiting.add(pid)
        asking = Thread(target=ask, daemon=True)
        asking.start()
        asking.join(self._seconds)
        return found[0] if found else None

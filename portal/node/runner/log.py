"""Writes Slurm's job log, which the user reads; never secrets."""

from __future__ import annotations

import os
import time


def say(text: str) -> None:
    """Write one line with its time; errors are ignored."""
    write(f"{stamp()} {text}\n".encode(errors="replace"))


def stamp() -> str:
    """The time in UTC, which the log's page shows as its reader's own."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def write(data: bytes) -> None:
    """Write unbuffered to the job's output, so that lines of several threads do not mix."""
    try:
        os.write(1, data)
    except OSError:
        return

"""Writes Slurm's job log, which the user reads; never secrets."""

from __future__ import annotations

import os
import time


def say(text: str) -> None:
    """Write one line with the time of day; errors are ignored."""
    stamp = time.strftime("%H:%M:%S")
    write(f"{stamp} {text}\n".encode(errors="replace"))


def write(data: bytes) -> None:
    """Write unbuffered to the job's output, so that lines of several threads do not mix."""
    try:
        os.write(1, data)
    except OSError:
        return

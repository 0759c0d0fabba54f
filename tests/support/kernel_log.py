"""The processes that this machine's kernel has killed for want of memory."""

from __future__ import annotations

import re
import subprocess

_KILLED = re.compile(
    r"\[ *(\d+\.\d+)\] (Memory cgroup out|Out) of memory: Killed process \d+ \((.*?)\)"
)
SLACK = 2.0
"""Seconds by which the log's times may differ from time.monotonic()."""


def memory_kills(since: float, log: str | None = None) -> list[str]:
    """Name those killed after `since` (time.monotonic()), and what was full: job or machine.

    `log` replaces the output of dmesg.
    """
    log = _kernel_log() if log is None else log
    return [
        f"{match[3]} ({'machine' if match[2] == 'Out' else 'job'})"
        for match in _KILLED.finditer(log)
        if float(match[1]) > since - SLACK
    ]


def _kernel_log() -> str:
    """The output of dmesg; "" if it is missing, or may not read the log."""
    try:
        done = subprocess.run(["dmesg"], capture_output=True, check=False)
        return done.stdout.decode(errors="replace")
    except OSError:
        return ""

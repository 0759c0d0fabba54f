"""Slurm's patterns in the names of output files (man sbatch, FILENAME PATTERN)."""

from __future__ import annotations

import re

from portal.core.jobs.job import Job
from portal.core.jobs.output import LONGEST_PATH

_PATTERN = re.compile(r"%(?P<width>\d{0,2})(?P<letter>[A-Za-z%])", re.ASCII)
MAX_WIDTH = 10
"""Slurm's maximum padding of numbers."""
MAX_PATTERNS = 200
"""Patterns in one path. A list expands them in each row, so more would make it slow."""


def insert_name(path: str, name: str) -> str:
    """The path with %x replaced by the job's present name, which may change; "" if it is too long.

    A path of 4 KB can contain the name a thousand times, in each of a thousand tasks.
    """
    if "\\" in path:
        return path
    names = sum(match["letter"] == "x" for match in _PATTERN.finditer(path))
    if len(path) + names * (len(name) - 2) > LONGEST_PATH:
        return ""
    literal = name.replace("%", "%%")
    return _PATTERN.sub(lambda match: literal if match["letter"] == "x" else match[0], path)


def expand_path(path: str, job: Job) -> str:
    """The path of a batch job's output file; "" while it depends on values not known yet."""
    if "\\" in path:  # Slurm then replaces no patterns, and removes the backslashes
        return path.replace("\\", "")
    if path.count("%") > MAX_PATTERNS:
        return ""
    values = _values(job)
    unknown = False

    def replaced(match: re.Match[str]) -> str:
        nonlocal unknown
        letter = match["letter"]
        if letter not in values:
            return match[0]
        value = values[letter]
        unknown = unknown or value is None
        width = min(int(match["width"] or 0), MAX_WIDTH)
        return (value or "").zfill(width) if letter in _NUMBERS else value or ""

    expanded = _PATTERN.sub(replaced, path)
    return "" if unknown else expanded


_NUMBERS = frozenset("AaJjbnst")


def _values(job: Job) -> dict[str, str | None]:
    """The value of each letter; None if it is not known yet."""
    task = job.tasks if job.tasks.isdecimal() else None if job.array_id else "4294967294"
    nodes = job.report.nodes
    return {
        "%": "%",
        "A": job.array_id or job.id,
        "a": task,
        "b": None if task is None else str(int(task) % 10),
        "j": None if job.array_id and task is None else job.id,
        "J": None if job.array_id and task is None else job.id,
        "N": nodes[0].partition(".")[0] if nodes else None,
        "n": "0",
        "s": "batch",
        "t": "0",
        "u": job.report.user,
    }

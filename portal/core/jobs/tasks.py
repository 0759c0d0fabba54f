"""Slurm's notation for tasks of an array: "4", "0-19%4", "1-7:2"; where it is cut, "..."."""

from __future__ import annotations

import re

MAX_SHOWN = 64
"""Characters of a list; Slurm's commands cut longer ones, too."""
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


def _ranges(tasks: str) -> list[range]:
    """The ranges that can be read; the rest of a list that Slurm shortened is missing."""
    found = []
    for part in tasks.partition("%")[0].split(","):
        match = _RANGE.fullmatch(part)
        if match is not None:
            first, last, step = match.groups()
            found.append(range(int(first), int(last or first) + 1, int(step or 1) or 1))
    return found


def shorten(tasks: str) -> str:
    """The tasks as Slurm's commands show a long list: its beginning, and how many run at once."""
    listed, percent, limit = tasks.partition("%")
    if len(listed) <= MAX_SHOWN:
        return tasks
    return f"{listed[:MAX_SHOWN].rpartition(',')[0]},...{percent}{limit}"


def count_tasks(tasks: str) -> int:
    """The number of tasks; of a list that Slurm shortened, of those that it shows. At least 1."""
    return max(sum(map(len, _ranges(tasks))), 1)


def has_task(tasks: str, task: int) -> bool:
    """Whether this task is among them; True for all if Slurm shortened the list."""
    return "..." in tasks or any(task in one for one in _ranges(tasks))


def at_once(tasks: str) -> int | None:
    """The most tasks that may run at once ("%4"); None if that is not limited."""
    limit = tasks.partition("%")[2]
    return int(limit) if limit.isascii() and limit.isdecimal() else None

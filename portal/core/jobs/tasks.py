"""Slurm's notation for tasks of an array: "4", "0-19%4", "1-7:2"; "..." marks a shortened list."""

from __future__ import annotations

import re

MAX_SHOWN = 64
"""Characters of a list; Slurm's commands shorten longer ones as well."""
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


def _ranges(tasks: str) -> list[range]:
    """The ranges that can be parsed; a list that Slurm shortened is incomplete."""
    ranges = []
    for part in tasks.partition("%")[0].split(","):
        match = _RANGE.fullmatch(part)
        if match is not None:
            first, last, step = match.groups()
            ranges.append(range(int(first), int(last or first) + 1, int(step or 1) or 1))
    return ranges


def shorten(tasks: str) -> str:
    """The tasks, a long list shortened like Slurm's commands do, with the limit (%) kept."""
    listed, percent, limit = tasks.partition("%")
    if len(listed) <= MAX_SHOWN:
        return tasks
    return f"{listed[:MAX_SHOWN].rpartition(',')[0]},...{percent}{limit}"


def count_tasks(tasks: str) -> int:
    """The number of tasks, at least 1; in a shortened list, of those that it shows."""
    return max(sum(map(len, _ranges(tasks))), 1)


def has_task(tasks: str, task: int) -> bool:
    """Whether this task is in the list; always True for a list that Slurm shortened."""
    return "..." in tasks or any(task in numbers for numbers in _ranges(tasks))


def at_once(tasks: str) -> int | None:
    """The most tasks that may run at once ("%4"); None if that is not limited."""
    limit = tasks.partition("%")[2]
    return int(limit) if limit.isascii() and limit.isdecimal() else None

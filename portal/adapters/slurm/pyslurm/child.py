"""The process that reads the queue by pyslurm, and prints it as squeue would.

pyslurm holds Python's interpreter lock while it waits for slurmctld (ten seconds measured), so it
runs in a separate process. For each line on standard input it prints one line, "jobs N", "down
TEXT" or "unusable TEXT", and N lines with the fields of queue.py.

It is written for pyslurm 24.11. Exit codes come from `pyslurm.Jobs`, since `pyslurm.job` repeats
those of other jobs; allocated TRES come from `pyslurm.job`, since `pyslurm.Jobs` has none.
"""

from __future__ import annotations

import pwd
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, TextIO

SEPARATOR = "\x1f"  # as in commands.py: the portal's modules cannot be imported here (python -I)
NEEDED = ("Jobs", "job", "RPCError")


class UnusableError(Exception):
    """pyslurm cannot be used here; the text gives the reason."""


def load() -> ModuleType:
    """The installed pyslurm; raises UnusableError."""
    try:
        pyslurm = import_module("pyslurm")
    except ImportError as error:
        raise UnusableError(f"pyslurm cannot be imported: {error}") from error
    if missing := [name for name in NEEDED if not hasattr(pyslurm, name)]:
        version = getattr(pyslurm, "__version__", "of an unknown version")
        raise UnusableError(f"pyslurm {version} has no {missing[0]}; 24.11 is known to work")
    return pyslurm


def lines(pyslurm: ModuleType) -> list[str]:
    """All jobs in Slurm's memory; raises UnusableError, and what pyslurm raises."""
    allocated = pyslurm.job().get()
    jobs = pyslurm.Jobs.load().values()
    # A job that was submitted between the two calls is included the next time.
    return [line(job, allocated[job.id]) for job in jobs if job.id in allocated]


def line(job: Any, allocated: Mapping[str, Any]) -> str:
    """One job's line."""
    tres = allocated["tres_alloc_str"] or allocated["tres_req_str"]
    fields = (
        job.id,
        user_name(job.user_id),
        job.state,
        job.state_reason,
        job.allocated_nodes,
        _time_or_none(job.submit_time),
        _time_or_none(job.start_time),
        _time_or_none(job.end_time),
        f"{job.exit_code or 0}:{job.exit_code_signal or 0}",
        job.partition,
        job.priority,
        job.account,
        job.qos,
        tres,
        duration(job.time_limit),
        job.requeue_count,
        job.array_id or job.id,
        _tasks(job),
        job.heterogeneous_id or "N/A",
        job.heterogeneous_offset or 0 if job.heterogeneous_id else "N/A",
    )
    return "".join(_plain(field) + SEPARATOR for field in fields)


def _time_or_none(time: int | None) -> int | str:
    return time or "N/A"


def _tasks(job: Any) -> str:
    if waiting := job.array_tasks_waiting:
        at_once = job.array_tasks_parallel
        return f"{waiting}%{at_once}" if at_once else str(waiting)
    return "N/A" if job.array_task_id is None else str(job.array_task_id)


def _plain(value: object) -> str:
    """A value as text without field and line separators."""
    text = "" if value is None else str(value)
    return text.translate({0x1F: " ", 0x0A: " ", 0x0D: " "})


def duration(minutes: int | None) -> str:
    """A time limit as squeue prints it."""
    if minutes is None:
        return "UNLIMITED"
    days, minutes_of_day = divmod(minutes, 1440)
    return f"{days}-{minutes_of_day // 60:02}:{minutes_of_day % 60:02}:00"


@cache
def user_name(uid: int) -> str:
    """The name of a user; raises UnusableError if this host does not know it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError as error:
        raise UnusableError(f"this host does not know the user {uid} of a job") from error


def answer(pyslurm: ModuleType) -> Iterator[str]:
    """Yield the lines that are printed for one request."""
    try:
        jobs = lines(pyslurm)
    except UnusableError as error:
        yield f"unusable {_plain(error)}"
    except (pyslurm.RPCError, ValueError, OSError) as error:
        yield f"down {_plain(error)}"
    else:
        yield f"jobs {len(jobs)}"
        yield from jobs


def main(requests: TextIO, answers: TextIO) -> None:
    """Answer requests until their end."""
    try:
        pyslurm = load()
    except UnusableError as error:
        print(f"unusable {_plain(error)}", file=answers, flush=True)
        return
    for _ in requests:
        print("\n".join(answer(pyslurm)), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)

"""Jobs in the store, as the worker writes them, and what Slurm measures of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from portal.adapters.slurm.commands import SEPARATOR
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job, JobTexts
from tests.support.fakes import World
from tests.support.stored_jobs import store_jobs

OUT, ERR = "/home/alice/run/job.out", "/home/alice/run/job.err"
TEXTS = JobTexts("fit", "/home/alice/run", "/home/alice/run/fit.sh --fast", OUT, ERR)
MEMORY = 3 * 2**30
OF_JOB = ("array_id", "tasks", "signal")


def store(world: World, job: Job) -> Job:
    """Store what the worker has read of a job."""
    store_jobs(world, job)
    return job


def submit(world: World, number: int = 7, user: str = "alice", **changes: Any) -> Job:
    """A pending job; changes of its report, of itself, or its texts."""
    own = {name: changes.pop(name) for name in OF_JOB if name in changes}
    texts = changes.pop("texts", TEXTS)
    values: dict[str, Any] = {
        "state": JobState.PENDING,
        "submitted": world.clock(),
        "time_limit": 60,
        "partition": "main",
        "account": "research",
        "qos": "normal",
        "cpus": 4,
        "memory_mb": 8192,
    }
    report = JobReport(job_id=str(number), user=user, **(values | changes))
    return store(world, Job(report, texts=texts, **own))


def run(world: World, number: int = 7, user: str = "alice", **changes: Any) -> Job:
    """A job that has been running for a minute."""
    start = world.clock()
    world.clock.advance(minutes=1)
    running = {
        "state": JobState.RUNNING,
        "nodes": ("n1",),
        "start": start,
        "deadline": start + timedelta(hours=1),
    }
    return submit(world, number, user, **(running | changes))


def end(world: World, number: int = 7, state: JobState = JobState.COMPLETED, **changes: Any) -> Job:
    """A job that ended now."""
    return run(world, number, state=state, end=world.clock() + timedelta(minutes=1), **changes)


def live_step(number: int, seconds: int, memory: int = MEMORY, step: str = "batch") -> str:
    """A line of sstat's; processor time in seconds, memory in bytes."""
    time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    total = f"cpu={time},energy=0,fs/disk=12,mem={memory},pages=0,vmem={2 * memory}"
    return "|".join([f"{number}.{step}", "1", time, str(memory), str(memory), "n1", total])


def record(number: int, elapsed: int, total: str = "00:02:00", peak: str = "1024M") -> list[str]:
    """Lines of sacct's: the job and its batch step; elapsed in seconds."""
    tres = "billing=4,cpu=4,mem=8G,node=1"
    whole = [number, "COMPLETED", 1795176000, elapsed, 4, tres, "", total, "", ""]
    batch = [f"{number}.batch", "COMPLETED", 1795176000, elapsed, 4, tres, 1, total, peak, "n1"]
    return [SEPARATOR.join(map(str, line)) for line in (whole, batch)]

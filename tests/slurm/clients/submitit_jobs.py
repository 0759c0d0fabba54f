"""submitit as people use it: `python3 submitit_jobs.py ACTION` on the login node; prints JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import submitit  # type: ignore[import-not-found]  # on the test cluster only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

IMAGE = "#SLIPWAY --image=python/3.13 --mount=/srv/slipway/clients:ro"
"""In the script's setup, whose lines come right after the #SBATCH ones."""


def executor(**changes: Any) -> Any:
    """An executor whose jobs run in the image."""
    made = submitit.SlurmExecutor(folder="logs", max_num_timeout=1, python="python3")
    made.update_parameters(mem="300M", setup=[IMAGE], **({"time": 5} | changes))
    return made


def where(number: int) -> tuple[int, bool]:
    """The square, and whether this runs in an image."""
    return number * number, os.path.isdir("/opt/slipway")


class Counter:
    """Waits to be interrupted, and goes on where it was."""

    def __call__(self, begun: bool = False) -> tuple[str, bool]:
        """Wait in the first run; tell in the second."""
        if begun:
            return "resumed", os.path.isdir("/opt/slipway")
        open(f"up-{os.environ['SLURM_JOB_ID']}", "w").close()
        time.sleep(300)
        return "never interrupted", False

    def checkpoint(self, _begun: bool = False) -> Any:
        """What is submitted in its place."""
        return submitit.helpers.DelayedSubmission(self, True)


def interrupt(job: Any) -> None:
    """Send the signal of --signal, as Slurm does before a job's end or preemption."""
    deadline = time.monotonic() + 120
    while not os.path.exists(f"up-{job.job_id}") and time.monotonic() < deadline:
        time.sleep(0.5)
    subprocess.run(["scancel", "--signal=USR2", job.job_id], check=True)


def start_requeued(job: Any) -> None:
    """Have Slurm start a requeued job at once, which it otherwise does after two minutes."""
    deadline = time.monotonic() + 60
    state = ["squeue", "--noheader", "--format=%T", f"--jobs={job.job_id}"]
    while time.monotonic() < deadline:
        if subprocess.run(state, capture_output=True, check=False).stdout == b"PENDING\n":
            break
        time.sleep(0.5)
    update = ["scontrol", "update", f"JobId={job.job_id}", "StartTime=now"]
    subprocess.run(update, check=False)


def checkpointed() -> object:
    """The result of a job that was preempted, checkpointed and requeued."""
    # With less than ten minutes submitit takes every signal for the end of the time.
    job = executor(time=20).submit(Counter())
    interrupt(job)
    start_requeued(job)
    return job.result()


def timed_out() -> str:
    """What submitit says of a job that cannot be checkpointed, and whose time is over."""

    def work() -> None:
        open(f"up-{os.environ['SLURM_JOB_ID']}", "w").close()
        time.sleep(300)

    job = executor().submit(work)
    interrupt(job)
    try:
        return f"it has a result: {job.result()}"
    except submitit.core.utils.UncompletedJobError as error:
        return str(error)


ACTIONS = {
    "job": lambda: executor().submit(where, 3).result(),
    "array": lambda: [job.result() for job in executor().map_array(where, [1, 2, 3])],
    "checkpoint": checkpointed,
    "timeout": timed_out,
}

if __name__ == "__main__":
    print(json.dumps(ACTIONS[sys.argv[1]]()))

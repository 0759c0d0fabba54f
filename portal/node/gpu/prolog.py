"""Slurm's Prolog and Epilog: create a job's slice before it starts, and remove it after its end.

Neither ever fails, which would drain the node: without a slice the session does not start.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from portal.node.common.fgpu import MIB
from portal.node.gpu import limits, settings, slices, slurm, untrusted
from portal.node.gpu.nvml import Nvml

TRIES = 3
PAUSE = 1.0

Ask = Callable[[int, str], slurm.NodeJob]


def prolog(
    environment: Mapping[str, str],
    *,
    jobs: Path = slices.JOBS,
    file: Path = settings.FILE,
    ask: Ask = slurm.ask,
    connect: Callable[[], Nvml] = Nvml,
) -> None:
    """Create the folder of a job with GPUs; other jobs are not delayed."""
    gpus = environment.get("SLURM_JOB_GPUS", "")
    if not gpus:
        return
    job = int(environment["SLURM_JOB_ID"])
    node_job = None
    try:
        slices.remove(jobs, job)  # an earlier run's slice must not remain
        node_job = _ask(job, environment["SLURMD_NODENAME"], ask)
        files = _files(node_job, [int(number) for number in gpus.split(",")], file, connect)
    except Exception as error:
        files = _without_slice(job, node_job, error)
    owner = (node_job.uid, node_job.gid) if node_job else (0, 0)
    try:
        slices.write(jobs, job, owner, files)
    except Exception as error:
        # For instance, the file system is full. If not even the reason can be written, there is
        # no folder, and the job's tasks do not start either (spank_slipway.c).
        slices.write(jobs, job, owner, _without_slice(job, node_job, error))


def _without_slice(job: int, node_job: slurm.NodeJob | None, error: Exception) -> dict[str, str]:
    """Return the files of a job's folder if no slice can be created."""
    why = untrusted.printable(str(error) or repr(error))
    print(f"slipway-gpu: job {job} gets no slice: {why}", file=sys.stderr)
    # Whole GPUs need no limits: jobs that are not Slipway's continue without a slice.
    return {} if node_job and slices.only_whole(node_job.gres) else {"refused": f"{why}\n"}


def epilog(environment: Mapping[str, str], jobs: Path = slices.JOBS) -> None:
    """Remove the job's folder. Idempotent."""
    slices.remove(jobs, int(environment["SLURM_JOB_ID"]))


def _ask(job: int, node: str, ask: Ask) -> slurm.NodeJob:
    """Slurm's answer; retries during a short outage, such as a restart of the controller."""
    for _ in range(TRIES - 1):
        try:
            return ask(job, node)
        except slurm.NoSuchJob:
            raise
        except slurm.SlurmError:
            time.sleep(PAUSE)
    return ask(job, node)


def _files(
    node_job: slurm.NodeJob, numbers: list[int], file: Path, connect: Callable[[], Nvml]
) -> dict[str, str]:
    nvml = connect()
    try:
        devices = nvml.devices()
        config = settings.load(file)
        slice_ = slices.decide(node_job.gres, numbers, devices, config.kinds, config.context)
        files = {"slice": slice_.text()}
        limited = [part for part in slice_.parts if part.memory]
        if limited and limits.supported(nvml.driver(), limited[0].uuid):
            # The driver counts contexts, too: one per session is added.
            lines = (f"{part.uuid} {(part.memory + config.context) // MIB}\n" for part in limited)
            files[limits.FILE] = "".join(lines)
        return files
    finally:
        nvml.close()

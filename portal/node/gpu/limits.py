"""Tier A: the driver itself (r615 and newer, cgroup v2) limits the device memory of a job's cgroup.

Prolog stores the limits before the job has a cgroup; the SPANK plug-in calls `apply` as root once
it has one, before the task starts.
"""

from __future__ import annotations

from pathlib import Path

from portal.node.gpu import slices, untrusted
from portal.node.gpu.cgroups import CGROUPS, cgroup_of

FILE = "limits"
FIRST_DRIVER = 615
SECONDS = 20


class LimitsError(Exception):
    """The driver rejected the limits; the text says why."""


def supported(driver: tuple[int, ...], gpu: str, cgroups: Path = CGROUPS) -> bool:
    """Whether the driver can limit cgroups on this node."""
    return (
        driver[:1] >= (FIRST_DRIVER,)
        and (cgroups / "cgroup.controllers").exists()
        and _nvidia_smi("--get", "-n", str(cgroups), "-i", gpu).code == 0
    )


def apply(job: int, jobs: Path = slices.JOBS, cgroups: Path = CGROUPS) -> None:
    """Apply Prolog's limits, if there are any. Idempotent. Raises LimitsError."""
    file = slices.folder_of(job, jobs) / FILE
    if not file.exists():
        return
    cgroup = cgroup_of(job, cgroups)
    if cgroup is None:
        raise LimitsError(f"job {job} has no cgroup below {cgroups}")
    for line in untrusted.lines(untrusted.read(file)):
        gpu, memory = line.split()
        # No reservation (soft 0): the shards of a GPU never exceed its memory in total, and the
        # driver would keep a reservation after the cgroup is removed.
        words = ("-n", str(cgroup), "--soft-limit", "0", "--hard-limit", memory, "-i", gpu)
        result = _nvidia_smi("--set", *words)
        if result.code != 0:
            raise LimitsError(
                f"nvidia-smi memory-limits: {(result.stdout + result.stderr).strip()}"
            )


def _nvidia_smi(*words: str) -> untrusted.Completed:
    try:
        return untrusted.run(["nvidia-smi", "memory-limits", *words], SECONDS)
    except untrusted.CommandError as error:
        return untrusted.Completed(1, "", str(error))

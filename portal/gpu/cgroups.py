"""Which job a process belongs to, and where a job's cgroup is: cgroup v1 and v2."""

from __future__ import annotations

import re
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")

# v1: /slurm/uid_1001/job_12/..., with several slurmd on a machine /slurm_n1/...;
# v2: /system.slice/slurmstepd.scope/job_12/..., likewise n1_slurmstepd.scope.
_JOB = re.compile(r"/(?:slurm(?:_[^/]+)?/uid_\d+|(?:[^/]+_)?slurmstepd\.scope)/job_(\d+)(?:/|$)")
_PATTERNS = (
    "*slurmstepd.scope/job_{}",
    "*/*slurmstepd.scope/job_{}",
    "*/*/*slurmstepd.scope/job_{}",
)


def job_in(cgroup: str) -> int | None:
    """The job in the content of /proc/PID/cgroup."""
    for line in cgroup.splitlines():
        path = line.split(":", 2)[-1]
        # Users may create cgroups of any name below their own slice.
        found = None if "/user.slice/" in path else _JOB.search(path)
        if found:
            return int(found[1])
    return None


def job_of(pid: int, proc: Path = PROC) -> int | None:
    """The job that a process belongs to; None if it belongs to none or has exited."""
    try:
        return job_in((proc / str(pid) / "cgroup").read_text())
    except OSError:
        return None


def cgroup_of(job: int, cgroups: Path = CGROUPS) -> Path | None:
    """A job's own cgroup (v2)."""
    for pattern in _PATTERNS:
        for found in cgroups.glob(pattern.format(job)):
            return found
    return None


def has_cgroup(job: int, cgroups: Path = CGROUPS) -> bool:
    """Whether a job has a cgroup on this node (v1 and v2)."""
    v1 = any(True for _ in cgroups.glob(f"*/slurm*/uid_*/job_{job}"))
    return v1 or cgroup_of(job, cgroups) is not None

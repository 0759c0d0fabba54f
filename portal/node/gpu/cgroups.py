"""Map processes to jobs and steps by their cgroups (v1 and v2)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from portal.node.gpu import untrusted

CGROUPS = Path("/sys/fs/cgroup")
PROC = Path("/proc")

# v1: /slurm/uid_1001/job_12/step_0/..., with several slurmd on a machine /slurm_n1/...;
# v2: /system.slice/slurmstepd.scope/job_12/step_0/..., likewise n1_slurmstepd.scope.
_JOB = re.compile(
    r"/(?:slurm(?:_[^/]+)?/uid_\d+|(?:[^/]+_)?slurmstepd\.scope)"
    r"/job_(?P<job>[0-9]{1,10})(?:/step_(?P<step>[^/]+))?(?:/|$)"
)
_PATTERNS = (
    "*slurmstepd.scope/job_{}",
    "*/*slurmstepd.scope/job_{}",
    "*/*/*slurmstepd.scope/job_{}",
)


class Step(NamedTuple):
    """A job step by its name in cgroups ("batch", "extern", "0"); "" is the job itself."""

    job: int
    name: str


def step_in(cgroup: str) -> Step | None:
    """Parse the content of /proc/PID/cgroup; None for a process outside of all jobs."""
    step: Step | None = None
    for line in untrusted.lines(cgroup):
        path = line.split(":", 2)[-1]
        match = _JOB.search(path)
        # Users may create cgroups of any name below their own slice.
        if match and "/user.slice/" in path[: match.start() + 1]:
            match = None
        if match and (step is None or step == (int(match["job"]), "")):
            step = Step(int(match["job"]), match["step"] or "")
    return step


def step_of(pid: int, proc: Path = PROC) -> Step | None:
    """The job and step that a process belongs to; None if there is none or it has exited."""
    try:
        return step_in(untrusted.read(proc / str(pid) / "cgroup"))
    except OSError:
        return None


def job_of(pid: int, proc: Path = PROC) -> int | None:
    """The job that a process belongs to; None if it belongs to none or has exited."""
    step = step_of(pid, proc)
    return step.job if step else None


def cgroup_of(job: int, cgroups: Path = CGROUPS) -> Path | None:
    """Return the path of a job's cgroup (v2); None if there is none."""
    for pattern in _PATTERNS:
        for path in cgroups.glob(pattern.format(job)):
            return path
    return None


def has_cgroup(job: int, cgroups: Path = CGROUPS) -> bool:
    """Whether a job has a cgroup on this node (v1 and v2)."""
    v1 = any(True for _ in cgroups.glob(f"*/slurm*/uid_*/job_{job}"))
    return v1 or cgroup_of(job, cgroups) is not None

"""The job of a process: Slurm's cgroups, both versions, both layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.gpu.cgroups import cgroup_of, has_cgroup, job_in, job_of

V1 = """9:name=systemd:/libpod_parent/libpod-a2f6
6:freezer:/libpod_parent/libpod-a2f6/slurm_n1/uid_1001/job_12/step_batch
5:devices:/libpod_parent/libpod-a2f6/slurm_n1/uid_1001/job_12/step_batch/task_0
0::/libpod_parent/libpod-a2f6
"""


@pytest.mark.parametrize(
    ("text", "job"),
    [
        (V1, 12),
        ("4:memory:/slurm/uid_0/job_7/step_0/task_0\n", 7),
        ("0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0\n", 12),
        ("0::/system.slice/n1_slurmstepd.scope/job_12/step_extern/user/task_special\n", 12),
        ("0::/slurmstepd.scope/job_3/step_batch\n", 3),
        # The user's own cgroups inside a job still belong to the job.
        (
            "0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0/slurmstepd.scope/job_9\n",
            12,
        ),
        ("0::/user.slice/user-1001.slice/user@1001.service/slurmstepd.scope/job_9/x\n", None),
        ("0::/system.slice/ssh.service\n", None),
        ("0::/job_12\n", None),
        ("", None),
    ],
)
def test_the_job_of_a_cgroup(text: str, job: int | None) -> None:
    assert job_in(text) == job


def test_a_missing_process_belongs_to_no_job(tmp_path: Path) -> None:
    assert job_of(1, tmp_path) is None


def test_a_jobs_own_cgroup(tmp_path: Path) -> None:
    assert cgroup_of(12, tmp_path) is None
    job = tmp_path / "system.slice" / "slurmstepd.scope" / "job_12"
    (job / "step_0").mkdir(parents=True)
    assert cgroup_of(12, tmp_path) == job
    assert has_cgroup(12, tmp_path)
    assert not has_cgroup(1, tmp_path)
    (tmp_path / "memory" / "slurm_n1" / "uid_1001" / "job_5").mkdir(parents=True)
    assert has_cgroup(5, tmp_path)

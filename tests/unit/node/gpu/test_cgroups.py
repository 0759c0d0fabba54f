"""The job of a process: Slurm's cgroups, both versions, both layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.node.gpu.cgroups import Step, cgroup_of, has_cgroup, job_of, step_in

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
        # What a user calls a cgroup below the job's own changes nothing.
        ("0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0/user.slice/x\n", 12),
        ("0::/user.slice/user-1001.slice/user@1001.service/slurmstepd.scope/job_9/x\n", None),
        ("0::/system.slice/ssh.service\n", None),
        ("0::/job_12\n", None),
        ("", None),
    ],
)
def test_the_job_of_a_cgroup(text: str, job: int | None) -> None:
    found = step_in(text)
    assert (found.job if found else None) == job


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (V1, "batch"),
        ("0::/slurmstepd.scope/job_3/step_extern/user/task_special\n", "extern"),
        ("0::/slurmstepd.scope/job_3/step_0/slurm\n", "0"),
        ("4:freezer:/slurm/uid_7/job_3\n", ""),
        # slurmstepd of v1 is beside its step in one controller, and in it in another.
        ("6:freezer:/slurm/uid_7/job_3\n4:memory:/slurm/uid_7/job_3/step_0\n", "0"),
        ("6:freezer:/slurm/uid_7/job_3\n4:memory:/slurm/uid_7/job_4/step_0\n", ""),
    ],
)
def test_the_step_of_a_cgroup(text: str, name: str) -> None:
    assert step_in(text) == Step(12 if text is V1 else 3, name)


@pytest.mark.parametrize("separator", list("\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"))
def test_a_cgroups_name_forges_no_line(separator: str) -> None:
    """Such a line made a process another job's."""
    forged = f"{separator}0::/system.slice/slurmstepd.scope/job_99/step_0"
    text = f"0::/system.slice/slurmstepd.scope/job_12/step_0/user/x{forged}\n"
    assert step_in(text) == Step(12, "0")
    assert step_in(f"0::/user.slice/user-1001.slice/user@1001.service/x{forged}\n") is None


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

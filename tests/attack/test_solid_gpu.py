"""Root's side of fractional GPUs: whatever a user submits, changes or forges, Slurm decides.

Row "Root's side of GPUs" of what was attacked and found solid. tests/slurm/test_gpu_node.py covers
what happens on the node afterwards.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.support.cluster import Cluster, wait_for

JOBS = "/run/slipway/gpu/jobs"
MIB = 1 << 20
OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"}
SLICES = {shards: {f"memory={shards * 2048 * MIB}", f"sm={shards * 25}"} for shards in (1, 2, 3, 4)}
SLICES[-1] = {"memory=0", "sm=100"}  # a whole GPU has no limits to enforce
SLEEP = "#!/bin/sh\nsleep 120\n"

Submit = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def submit(cluster: Cluster) -> Iterator[Submit]:
    """Submit a job as bob; the job ends with the test."""
    name = "solid-gpu"

    def run(*options: str, script: str = SLEEP) -> subprocess.CompletedProcess[str]:
        argv = [
            "sbatch",
            "--parsable",
            f"--job-name={name}",
            "--chdir=/home/bob",
            "--output=/dev/null",
        ]
        argv += ["--cpus-per-task=1", "--mem=100M", *options]
        return cluster.attempt("exec", "--user", "bob", "login", "--", *argv, stdin=script)

    yield run
    cluster.run("login", "scancel", "--user=bob", f"--name={name}", "--full", check=False)

    def gone() -> bool:
        argv = ["squeue", "--noheader", "--user=bob", f"--name={name}"]
        return not cluster.run("login", *argv).strip()

    wait_for("bob's jobs to end", gone)


def _granted(cluster: Cluster, job: str) -> int:
    """The number of shards that Slurm has allocated to the job; -1 for a whole GPU."""
    text = cluster.run("login", "scontrol", "show", "job", "--details", job)
    fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
    held = dict(item.partition("=")[::2] for item in fields.get("AllocTRES", "").split(","))
    return int(held.get("gres/shard", 0)) or (-1 if "gres/gpu" in held else 0)


def _judge(cluster: Cluster, job: str) -> None:
    """The job runs with exactly its slice, or runs without one, or never runs."""

    def state() -> str | None:
        found = cluster.run(
            "login", "squeue", "-h", "--states=all", f"--jobs={job}", "-o", "%T"
        ).split()
        return found[0] if found and found[0] not in ("CONFIGURING",) else None

    first = wait_for("a state", state)
    if first == "PENDING":
        wait_for("a scheduler cycle", lambda: state() != "PENDING" or _reason(cluster, job), 20)
    if state() != "RUNNING":
        return
    shards = _granted(cluster, job)

    def slice_of() -> list[str]:
        return cluster.run("n1", "cat", f"{JOBS}/{job}/slice", check=False).splitlines()

    # Slurm reports a job as running while its Prolog is still running.
    if shards:
        wait_for("the slice, or the job's end", lambda: slice_of() or state() != "RUNNING")
    lines = slice_of()
    if state() != "RUNNING":
        return
    if shards:
        assert set(lines[-2:]) == SLICES[shards], (shards, lines)
        assert len(lines) == 5, lines
    else:
        assert not lines


def _reason(cluster: Cluster, job: str) -> bool:
    text = cluster.run("login", "squeue", "-h", f"--jobs={job}", "-o", "%r").strip()
    return text not in ("None", "")


SUBMISSIONS = {
    "nothing": ["--gres=shard:0"],
    "a negative number": ["--gres=shard:-1"],
    "more than there are": ["--gres=shard:5"],
    "a huge number": ["--gres=shard:4294967297"],
    "a suffix": ["--gres=shard:1k"],
    "a fraction": ["--gres=shard:0.5"],
    "another kind": ["--gres=shard:a100:1"],
    "two kinds": ["--gres=shard:standin8g:1,shard:a100:1"],
    "twice": ["--gres=shard:1,shard:4"],
    "shards and the GPU": ["--gres=shard:1,gpu:1"],
    "two nodes": ["--gres=shard:1", "--nodes=2"],
    "for each task": ["--ntasks=2", "--tres-per-task=gres/shard:1"],
    "for each socket": ["--gpus-per-socket=1", "--sockets-per-node=1"],
    "a kind with a line break": ["--gres=shard:standin8g\nmemory=99999999999:1"],
    "a kind with a path": ["--gres=shard:../../../etc/passwd:1"],
    "a name with a line break": ["--gres=shard:1", "--job-name=solid-gpu", "--comment=x\nsm=100"],
    "a forged environment": [
        "--gres=shard:1",
        "--export=ALL,SLURM_SHARDS_ON_NODE=4,SLURM_JOB_GPUS=0,SLURM_JOB_ID=1,CUDA_VISIBLE_DEVICES=0",
    ],
    "a forged job number": ["--gres=shard:1", "--export=ALL,SLURM_JOB_ID=../../../etc"],
    "a forged path": [
        "--gres=shard:1",
        "--export=ALL,PATH=/home/bob,PYTHONPATH=/home/bob,LD_PRELOAD=/home/bob/x.so",
    ],
    "a SPANK option": [
        "--gres=shard:1",
        "--export=ALL,SPANK_SLIPWAY=off,_SLURM_SPANK_OPTION_slipway=off",
    ],
    "no share, forged": ["--export=ALL,SLURM_SHARDS_ON_NODE=4,SLURM_JOB_GPUS=0"],
}


@pytest.mark.parametrize("case", SUBMISSIONS)
def test_a_submission_gets_the_slice_that_slurm_allocated_or_none(
    cluster: Cluster, submit: Submit, case: str
) -> None:
    done = (
        submit("--nodelist=n1", *SUBMISSIONS[case])
        if case != "two nodes"
        else submit(*SUBMISSIONS[case])
    )
    job = done.stdout.strip().partition(";")[0]
    if done.returncode != 0:
        assert done.stderr.strip()
        return
    assert job.isdigit(), done.stdout
    _judge(cluster, job)


@pytest.mark.parametrize(
    "change",
    ["Gres=shard:4", "TresPerNode=gres/shard:4", "Gres=gpu:1", "NumNodes=2"],
)
def test_a_running_job_cannot_enlarge_its_slice(
    cluster: Cluster, submit: Submit, change: str
) -> None:
    job = submit("--nodelist=n1", "--gres=shard:1").stdout.strip()
    slice_of = f"{JOBS}/{job}/slice"
    wait_for("the slice", lambda: cluster.run("n1", "cat", slice_of, check=False) or None)
    before = cluster.run("n1", "cat", slice_of)
    argv = ["scontrol", "update", f"JobId={job}", change]
    cluster.attempt("exec", "--user", "bob", "login", "--", *argv)
    assert cluster.run("n1", "cat", slice_of) == before
    assert SLICES[1] <= set(before.splitlines())
    _judge(cluster, job)


@pytest.mark.parametrize(
    "tampering",
    [
        "echo memory=0 >> {folder}/slice",
        "rm -f {folder}/slice {folder}/usage.json",
        "mv {folder} {folder}.away",
        "ln -s /etc/passwd {folder}/slice.new",
        "chmod 777 {folder} {folder}/slice",
        "mkdir -p {jobs}/999999 && echo memory=1 > {jobs}/999999/slice",
        "rm -rf {folder}/driver",
    ],
)
def test_the_jobs_folder_belongs_to_root(cluster: Cluster, submit: Submit, tampering: str) -> None:
    job = submit("--nodelist=n1", "--gres=shard:1").stdout.strip()
    folder = f"{JOBS}/{job}"
    wait_for("the slice", lambda: cluster.run("n1", "cat", f"{folder}/slice", check=False) or None)
    look = f"cd {JOBS} && find . -path './{job}*' -name slice -exec cat {{}} + "
    look += f"&& stat -c '%n %U %a' {folder} {folder}/slice {folder}/driver"
    before = cluster.shell("n1", look)
    command = tampering.format(folder=folder, jobs=JOBS)
    done = cluster.attempt("exec", "--user", "bob", "n1", "--", "sh", "-c", command)
    assert done.returncode != 0, "it worked"
    assert cluster.shell("n1", look) == before

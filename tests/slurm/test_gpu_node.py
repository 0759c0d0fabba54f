"""Root's side of fractional GPUs, with plain sbatch and srun: decisions and enforcement."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster, wait_for

JOBS = "/run/slipway/gpu/jobs"
MIB = 1 << 20
OVER = {"COMPLETED", "FAILED", "CANCELLED"}

# Allocates MiB of the GPU through the real driver's library, bypassing any shim, and keeps them.
HOLD = """#!/usr/bin/python3
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_ulonglong()
codes = [
    cuda.cuInit(0),
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
    cuda.cuCtxSetCurrent(context),
    cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t({mib} << 20)),
]
print("codes", *codes, flush=True)
time.sleep(300)
"""
SLEEP = "#!/bin/sh\nsleep 300\n"

Submit = Callable[..., str]


def _state(cluster: Cluster, job: str) -> str:
    argv = ["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"]
    return cluster.run("login", *argv).strip()


def _wait(cluster: Cluster, job: str, *states: str) -> None:
    wait_for(f"job {job} to be {states}", lambda: _state(cluster, job) in states)


def _output(cluster: Cluster, job: str) -> str:
    return cluster.run("login", "cat", f"/home/alice/gpu-{job}.out", check=False)


def _on_n1(cluster: Cluster, script: str, user: str = "") -> str:
    """Output and exit status of a script on the GPU's node."""
    return cluster.shell("n1", f"({script}) 2>&1; echo status $?", user=user)


@pytest.fixture(scope="module")
def submit(cluster: Cluster) -> Iterator[Submit]:
    """Submit a script as alice; her jobs end with this file's tests."""
    submitted: list[str] = []

    def run(script: str, *options: str) -> str:
        argv = ["sbatch", "--parsable", "--chdir=/home/alice", "--output=gpu-%j.out"]
        argv += ["--cpus-per-task=1", "--mem=100M", "--nodelist=n1", *options]
        job = cluster.run("login", *argv, user="alice", stdin=script).strip()
        submitted.append(job)
        return job

    yield run
    cluster.run("login", "scancel", *submitted)
    cluster.shell("login", "rm -f gpu-*.out", user="alice")


@pytest.fixture(scope="module")
def quarter(cluster: Cluster, submit: Submit) -> str:
    """A running job with one of four shards; its environment claims to have more."""
    lies = "--export=ALL,SLURM_SHARDS_ON_NODE=4,SLURM_JOB_GPUS=0"
    job = submit(HOLD.format(mib=1500), "--gres=shard:1", lies)
    _wait(cluster, job, "RUNNING")
    wait_for("its memory", lambda: "codes" in _output(cluster, job) or None)
    assert _output(cluster, job) == "codes 0 0 0 0\n"
    return job


def _usage(cluster: Cluster, job: str) -> dict[str, Any] | None:
    text = cluster.run("n1", "cat", f"{JOBS}/{job}/usage.json", check=False)
    found: dict[str, Any] | None = json.loads(text) if text else None
    return found


def test_the_slice_is_what_slurm_allocated(cluster: Cluster, quarter: str) -> None:
    lines = cluster.run("n1", "cat", f"{JOBS}/{quarter}/slice").splitlines()
    assert lines[:2] == ["version=1", "compute=limiter"]
    assert lines[2].startswith("gpu=GPU-")
    assert lines[3:] == [f"memory={2048 * MIB}", "sm=25"]


def test_root_owns_the_folder_and_the_user_the_counters(cluster: Cluster, quarter: str) -> None:
    folder = f"{JOBS}/{quarter}"
    names = f"cd {folder}; stat -Lc '%n %U %a' slice counters driver .; stat -Lc %s counters"
    assert cluster.shell("n1", names).splitlines() == [
        "slice root 644",
        "counters alice 600",
        "driver root 755",
        ". root 755",
        str(MIB),
    ]
    attempts = [
        f"echo memory=0 >> {folder}/slice",
        f"rm -f {folder}/slice",
        f"mv {folder} {JOBS}/999998",
        f"mkdir {JOBS}/999999",
    ]
    script = "; ".join(f"({attempt})" for attempt in attempts)
    assert _on_n1(cluster, script, "alice").count("Permission denied") == len(attempts)
    assert "Permission denied" in _on_n1(cluster, f"cat {folder}/counters", "bob")


def test_usage_is_measured(cluster: Cluster, quarter: str) -> None:
    def measured() -> dict[str, Any] | None:
        usage = _usage(cluster, quarter)
        return usage if usage and usage["processes"] else None

    usage = wait_for("a measurement", measured)
    assert 1500 * MIB <= usage["memory"] <= 1700 * MIB
    assert (usage["processes"], usage["kills"]) == (1, 0)


def test_a_job_without_a_share_gets_nothing(cluster: Cluster, submit: Submit) -> None:
    script = f"#!/bin/sh\nls {JOBS}/$SLURM_JOB_ID\ncat /dev/nvidia0\ntrue\n"
    job = submit(script, "--export=ALL,SLURM_SHARDS_ON_NODE=0,SLURM_JOB_GPUS=0")
    _wait(cluster, job, *OVER)
    assert "No such file or directory" in _output(cluster, job)
    assert "/dev/nvidia0: Operation not permitted" in _output(cluster, job)


def test_a_job_that_takes_more_is_ended_and_its_neighbour_is_not(
    cluster: Cluster, quarter: str, submit: Submit
) -> None:
    job = submit(HOLD.format(mib=3000), "--gres=shard:1")
    _wait(cluster, job, "FAILED")
    assert "codes 0 0 0 0" in _output(cluster, job)
    argv = ["sacct", "-n", "-X", "-o", "ExitCode", "-j", job]
    assert cluster.run("login", *argv).strip() == "0:9"
    assert f"job {job}: ended " in cluster.ctl("logs", "n1")
    usage = _usage(cluster, quarter)
    assert usage is not None
    assert (usage["processes"], usage["kills"]) == (1, 0)
    assert _state(cluster, quarter) == "RUNNING"


def test_slurmd_and_the_watchdog_restart_while_the_job_runs(cluster: Cluster, quarter: str) -> None:
    before = cluster.run("n1", "cat", f"{JOBS}/{quarter}/slice")
    cluster.daemon("restart", "n1", "slurmd", "slipway-gpu")
    started = float(cluster.run("n1", "date", "+%s"))
    wait_for(
        "a measurement of the new watchdog",
        lambda: (_usage(cluster, quarter) or {"time": 0})["time"] > started,
    )
    assert cluster.run("n1", "cat", f"{JOBS}/{quarter}/slice") == before
    assert _state(cluster, quarter) == "RUNNING"


def test_without_a_slice_nothing_starts_and_the_node_stays_up(
    cluster: Cluster, submit: Submit
) -> None:
    settings = "/etc/slipway/gpu.json"
    cluster.run("n1", "mv", settings, f"{settings}.away")
    try:
        job = submit("#!/bin/sh\necho it started\n", "--gres=shard:1")
        _wait(cluster, job, *OVER)
    finally:
        cluster.run("n1", "mv", f"{settings}.away", settings)
    assert _state(cluster, job) == "FAILED"
    text = _output(cluster, job)
    assert "it started" not in text
    assert "This job's share of a GPU cannot be fenced, so it does not start" in text
    assert "tell the administrators" in text
    node = cluster.run("login", "sinfo", "--noheader", "--nodes=n1", "--format=%T %E")
    assert set(node.splitlines()) <= {"mixed none", "idle none", "allocated none"}


def test_no_variable_lets_a_step_start_without_a_slice(cluster: Cluster, quarter: str) -> None:
    folder, aside = f"{JOBS}/{quarter}", "/run/slipway/gpu/aside"
    srun = ["srun", f"--jobid={quarter}", "--overlap", "--export=SLURM_SHARDS_ON_NODE=0"]
    cluster.run("n1", "mv", folder, aside)
    try:
        argv = ["exec", "--user", "alice", "login", "--", *srun, "echo", "it started"]
        done = cluster.attempt(*argv)
    finally:
        cluster.run("n1", "mv", aside, folder)
    assert done.returncode != 0
    assert "it started" not in done.stdout
    assert "cannot be fenced, so it does not start: it was not set up on this node" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--gres=shard:5"],
        ["--gres=shard:a100:1"],
        ["--gres=shard:1", "--nodes=2"],
        ["--gres=shard:standin8g:1,shard:a100:1"],
        ["--gres=shard:1,gpu:1"],
        ["--ntasks=1", "--tres-per-task=gres/shard:5"],
    ],
)
def test_slurm_refuses_impossible_requests_at_once(cluster: Cluster, options: list[str]) -> None:
    argv = ["exec", "--user", "alice", "login", "--", "sbatch", *options, "--wrap=true"]
    done = cluster.attempt(*argv)
    assert done.returncode != 0
    words = done.stdout + done.stderr
    assert "node configuration is not available" in words or "Invalid generic resource" in words


def test_shares_by_task_are_a_slice_as_well(cluster: Cluster, submit: Submit) -> None:
    script = f"#!/bin/sh\ncat {JOBS}/$SLURM_JOB_ID/slice\n"
    job = submit(script, "--ntasks=1", "--tres-per-task=gres/shard:2")
    _wait(cluster, job, "COMPLETED")
    assert _output(cluster, job).splitlines()[3:] == [f"memory={4096 * MIB}", "sm=50"]


def test_the_slice_is_removed_with_the_job(cluster: Cluster, quarter: str) -> None:
    cluster.run("login", "scancel", quarter)
    _wait(cluster, quarter, "CANCELLED")
    wait_for("no slice", lambda: "status 2" in _on_n1(cluster, f"ls -d {JOBS}/{quarter}") or None)
    again = (
        f"SLURM_JOB_ID={quarter} /etc/slurm/epilog.sh && SLURM_JOB_ID={quarter} slipway-gpu epilog"
    )
    assert _on_n1(cluster, again) == "status 0\n"


def test_the_node_passes_its_check(cluster: Cluster) -> None:
    found = _on_n1(cluster, "slipway-gpu check")
    assert "MISSING" not in found
    assert "standin8g, 4 shards" in found
    assert found.endswith("status 0\n")

"""Root's side of fractional GPUs cannot be stopped by anything that users hold, fill or lock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.support.cluster import Cluster, wait_for

GPU = "/run/slipway/gpu"
MIB = 1 << 20

Submit = Callable[[str], str]


@pytest.fixture
def submit(cluster: Cluster) -> Iterator[Submit]:
    """Submit a script as bob with a share of n1's GPU; his jobs end with the test."""
    jobs: list[str] = []

    def run(script: str) -> str:
        argv = [
            "sbatch",
            "--parsable",
            "--chdir=/home/bob",
            "--output=gpu-%j.out",
            "--gres=shard:1",
        ]
        argv += ["--cpus-per-task=1", "--mem=600M", "--nodelist=n1"]
        job = cluster.run("login", *argv, user="bob", stdin=f"#!/bin/sh\n{script}\n").strip()
        jobs.append(job)
        state = ["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"]
        wait_for("bob's job to run", lambda: cluster.run("login", *state).strip() == "RUNNING")
        return job

    yield run
    cluster.run("login", "scancel", *jobs)
    cluster.shell("login", "rm -f gpu-*.out", user="bob")


def output_of(cluster: Cluster, job: str) -> str:
    """The output so far of a job of bob's."""
    return cluster.run("login", "cat", f"/home/bob/gpu-{job}.out", check=False)


def measured_at(cluster: Cluster, job: str) -> float:
    """When the watchdog last wrote a job's usage."""
    text = cluster.run("n1", "cat", f"{GPU}/jobs/{job}/usage.json", check=False)
    return float(json.loads(text)["time"]) if text else 0.0


def test_user_locks_do_not_stop_the_watchdog(cluster: Cluster, submit: Submit) -> None:
    """M3: with read access to its lock file, bob kept it from restarting."""
    lock = f"find {GPU} -name '*lock*' 2>/dev/null; ls -A {GPU}/watch; "
    lock += f"for file in {GPU}/watch.lock {GPU}/watch/lock {GPU}/watch {GPU} {GPU}/jobs; do "
    lock += '(exec flock -x "$file" sh -c "echo has $file; exec sleep 300" 2>&1) & done; '
    job = submit(f"{lock}\nwait")
    wait_for("the watchdog's first measurement", lambda: measured_at(cluster, job))
    wait_for("bob's attempts", lambda: f"has {GPU}" in output_of(cluster, job))
    cluster.daemon("restart", "n1", "slipway-gpu")
    now = float(cluster.run("n1", "date", "+%s"))
    wait_for("the watchdog's next measurement", lambda: measured_at(cluster, job) > now + 1, 15)
    # Nor can his lock make it appear to run when it does not.
    assert "the watchdog runs" in cluster.run("n1", "slipway-gpu", "check", check=False)
    cluster.daemon("stop", "n1", "slipway-gpu")
    try:
        found = cluster.run("n1", "slipway-gpu", "check", check=False)
    finally:
        cluster.daemon("start", "n1", "slipway-gpu")
    assert "the GPU watchdog does not run" in found


def test_a_jobs_counters_cannot_fill_run(cluster: Cluster, submit: Submit) -> None:
    """L1: what bob wrote after his counters used up everybody's space in /run."""

    def used() -> int:
        return int(cluster.shell("n1", "df --output=used -B1 /run/slipway | tail -n 1"))

    folder = f"{GPU}/jobs/$SLURM_JOB_ID"
    before = used()
    job = submit(
        f"head -c 300000000 /dev/zero >> {folder}/counters; ls -ld {folder} {folder}/room\n"
        f"for place in {folder} {folder}/room {folder}/driver {GPU}/jobs {GPU}; do\n"
        'touch "$place/mine" && echo "made $place/mine"; done\n'
        "echo tried; sleep 300"
    )
    wait_for("bob's attempt", lambda: "tried" in output_of(cluster, job))
    assert "No space left on device" in output_of(cluster, job)
    assert "made " not in output_of(cluster, job)
    assert used() - before < 2 * MIB
    # Another user's job still gets its slice.
    other = submit("sleep 300")
    slice_ = ("cat", f"{GPU}/jobs/{other}/slice")
    wait_for("its slice", lambda: "version=1" in cluster.run("n1", *slice_, check=False))
    mounts = f"grep -c '{GPU}/jobs/{job}/room' /proc/mounts; true"
    assert cluster.shell("n1", mounts).strip() == "1"
    cluster.run("login", "scancel", job)
    wait_for("nothing to be left", lambda: cluster.shell("n1", mounts).strip() == "0")

"""Batch jobs that tests submit on the login node of a running cluster."""

from __future__ import annotations

import shlex

from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for


def sbatch(cluster: Cluster, user: str, script: str, *options: str) -> str:
    """Submit a shell script from the user's home; returns the job's number."""
    words = ["sbatch", "--parsable", "--time=10", "--mem=100", *options]
    command = f"cd && printf '%s\\n' '#!/bin/sh' {shlex.quote(script)} | {shlex.join(words)}"
    return cluster.shell("login", command, user=user).strip().partition(";")[0]


def cancel(cluster: Cluster, user: str) -> None:
    """Cancel all of a user's batch jobs."""
    cluster.shell("login", f"scancel --user={user}", user=user, check=False)


def wait_for_job(api: Api, number: str, *states: str, seconds: float = 60) -> Json:
    """Wait until a job is in one of Slurm's states, and the portal knows its files."""

    def there() -> Json | None:
        answer = api("GET", f"/jobs/{number}")
        job: Json = answer.json() if answer.status_code == 200 else {}
        return job if job.get("slurm_state") in states and job.get("stdout") else None

    return wait_for(f"job {number} {' or '.join(states)}", there, seconds)

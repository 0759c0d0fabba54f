"""Jobs submitted by the portal, and their output."""

from __future__ import annotations

from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

SCRIPT = """#!/bin/bash
#SBATCH --time=5
id -un
pwd
echo "task ${SLURM_ARRAY_TASK_ID-none} of $SLURM_JOB_NAME on $SLURM_CPUS_PER_TASK"
"""


def in_home(cluster: Cluster, command: str) -> str:
    """What a shell command in alice's home directory prints."""
    return cluster.run("login", "sh", "-c", f"cd /home/alice && {command}", user="alice")


def submit_job(api: Api, **body: object) -> str:
    """Submit a job and return its number."""
    small = {"resources": {"memory": "100m"}}
    sent = {"script": SCRIPT} | small | body
    job = api.ask("POST", "/jobs", 201, json={k: v for k, v in sent.items() if v is not None})
    return str(job["job"]["id"])


def wait_output(cluster: Cluster, file: str, lines: int = 1) -> str:
    """What a job wrote, once it is so many lines."""

    def output() -> str | None:
        text = in_home(cluster, f"cat {file} 2>/dev/null || :")
        return text if text.count("\n") >= lines else None

    return wait_for(f"output in {file}", output)

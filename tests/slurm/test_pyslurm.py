"""`slurm.reader = "pyslurm"`: every field is the same as squeue's, where there is a pyslurm.

The package index has none for the Slurms of the embedded cluster, so usually this says so. Where
the login node has one, SLIPWAY_PYSLURM_PYTHON names its Python.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from portal.adapters.slurm.commands import ENVIRONMENT
from portal.adapters.slurm.pyslurm import child
from portal.adapters.slurm.queue import squeue_argv, squeue_parse
from portal.core.jobs.job import Job
from tests.support.client import Api
from tests.support.cluster import Cluster, wait_for

PYTHON = os.environ.get("SLIPWAY_PYSLURM_PYTHON", "python3")
PLACE = "/tmp/slipway-pyslurm.py"


def _ask(cluster: Cluster) -> tuple[str, str]:
    """The first line of the answer on the login node, and the others."""
    program = Path(child.__file__).read_text()
    cluster.run("login", "sh", "-c", f"cat > {PLACE}", stdin=program)
    first, _, rest = cluster.shell("login", f"echo jobs | {PYTHON} -I {PLACE}").partition("\n")
    return first, rest


def _jobs(text: str) -> dict[str, Job]:
    return {job.id: job for job in squeue_parse(text)}


@pytest.mark.filterwarnings("default:NOT COMPARED")
def test_pyslurm_says_what_squeue_says(cluster: Cluster, alice: Api) -> None:
    session = alice.launch()["id"]
    alice.wait_state(session, "RUNNING")
    first, _ = _ask(cluster)
    if first.startswith("unusable"):
        assert "pyslurm" in first
        warnings.warn(f"NOT COMPARED WITH SQUEUE: {first}", stacklevel=1)
        return

    def same() -> bool:
        # Slurm's estimates of starts change between the two questions.
        _, lines = _ask(cluster)
        squeue = cluster.run("login", "env", *ENVIRONMENT, *squeue_argv())
        return bool(_jobs(lines)) and _jobs(lines) == _jobs(squeue)

    wait_for("pyslurm and squeue differ", same, 30, 1)

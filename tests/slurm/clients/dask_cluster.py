"""A Dask cluster whose workers are jobs: prints what a task sees. Run on the login node."""

from __future__ import annotations

import json
import os
import socket
import sys

from dask.distributed import Client  # type: ignore[import-not-found]  # on the test cluster only
from dask_jobqueue import SLURMCluster  # type: ignore[import-not-found]

IMAGE = "#SLIPWAY --image=python/3.13 --mount=/srv/slipway/clients:ro"


def where(number: int) -> tuple[int, bool, str]:
    """The square, whether this runs in an image, and the job's number."""
    return number * number, os.path.isdir("/opt/slipway"), os.environ["SLURM_JOB_ID"]


def main() -> None:
    """Start a worker, give it tasks, and end it."""
    address = socket.gethostbyname(socket.gethostname())
    cluster = SLURMCluster(
        cores=1,
        processes=1,
        memory="500MB",
        walltime="00:05:00",
        python="python3",
        job_script_prologue=[IMAGE],
        local_directory="/tmp",
        log_directory="logs",
        scheduler_options={"host": address, "dashboard_address": ":0"},
    )
    with cluster, Client(cluster) as client:
        cluster.scale(jobs=1)
        json.dump(client.gather(client.map(where, range(4))), sys.stdout)


if __name__ == "__main__":
    main()

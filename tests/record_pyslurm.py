"""Prints what pyslurm and squeue say of the same queue, as JSON, and fails where they differ.

Run it by hand on a Slurm client whose Python has pyslurm for its Slurm (the package index has none
for the Slurms of the embedded cluster): `python3 -m tests.record_pyslurm > FILE`. Its output is
replayed in tests/unit/adapters/slurm/pyslurm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from portal.adapters.slurm.commands import ENVIRONMENT
from portal.adapters.slurm.pyslurm import child
from portal.adapters.slurm.queue import squeue_argv, squeue_parse

JOB = (
    "id user_id state state_reason allocated_nodes submit_time start_time end_time exit_code "
    "exit_code_signal partition priority account qos time_limit requeue_count array_id "
    "array_task_id array_tasks_waiting array_tasks_parallel heterogeneous_id heterogeneous_offset"
).split()
TRES = ("tres_alloc_str", "tres_req_str")


def main() -> int:
    """Print the comparison; 1 if there is a difference."""
    pyslurm = child.load()
    allocated = pyslurm.job().get()
    jobs = list(pyslurm.Jobs.load().values())
    environment = os.environ | dict(one.split("=", 1) for one in ENVIRONMENT)
    squeue = subprocess.run(
        squeue_argv(), env=environment, capture_output=True, text=True, check=True
    ).stdout
    ours = "".join(child.line(job, allocated[job.id]) + "\n" for job in jobs)
    known = {job.id: job for job in squeue_parse(squeue)}
    found = {job.id: job for job in squeue_parse(ours)}
    for id in known.keys() | found.keys():
        if known.get(id) != found.get(id):
            print(f"squeue:  {known.get(id)}\npyslurm: {found.get(id)}", file=sys.stderr)
    record: dict[str, Any] = {
        "version": pyslurm.__version__,
        "users": {str(job.user_id): child.user_name(job.user_id) for job in jobs},
        "jobs": [{name: getattr(job, name) for name in JOB} for job in jobs],
        "allocated": {
            str(job.id): {name: allocated[job.id][name] for name in TRES} for job in jobs
        },
        "squeue": squeue,
    }
    print(json.dumps(record, indent=1))
    return int(known != found)


if __name__ == "__main__":
    sys.exit(main())

"""What surrounds a script in an image: its variables, Slurm's commands, folders, closed streams."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from tests.slurm.batch import Batch, End
from tests.support.cluster import Cluster

POISON = (
    "SINGULARITY_CLEANENV=1", "SINGULARITY_CONTAIN=1", "APPTAINER_CONTAINALL=1",
    "APPTAINER_BIND=/opt/only-on-login", "APPTAINER_OVERLAY=/nowhere", "APPTAINER_WRITABLE=1",
    "APPTAINER_ENV_FILE=/nowhere", "APPTAINER_MEMORY=1k", "APPTAINER_FAKEROOT=1",
    "APPTAINER_PWD=/nowhere", "APPTAINERENV_PATH=/nowhere", "SINGULARITYENV_HOME=/nowhere",
)  # fmt: skip
SHOWS = """#!/usr/bin/env python3
import os, pathlib, sys
data = pathlib.Path("/proc/self/environ").read_bytes().split(b"\\0")
names = sys.argv[1].encode().split(b",")
for pair in sorted(data):
    if pair.split(b"=")[0] in names:
        print(pair)
pathlib.Path.home().joinpath("result").write_text("written")
"""
EVERYWHERE = """#!/bin/bash -l
srun sh -c 'scontrol show hostnames $SLURM_JOB_NODELIST'
bash -lc 'squeue --me -h -o %A -j $SLURM_JOB_ID'
env PATH=/usr/bin:/bin bash -c 'squeue --me -h -o %A -j $SLURM_JOB_ID'
/usr/bin/squeue --me -h -o %A -j $SLURM_JOB_ID
srun bash -lc '/usr/bin/squeue --me -h -o %A -j $SLURM_JOB_ID'
env -i /usr/bin/squeue -h -o %A -j $SLURM_JOB_ID
"""
TEMPORARY = """#!/bin/bash
mktemp | sed 's/tmp\\.[^/]*$//'
python3 -c 'import tempfile; print(tempfile.gettempdir())'
srun bash -c 'mktemp -d' | sed 's/tmp\\.[^/]*$//'
"""


@pytest.fixture(scope="module")
def batch(cluster: Cluster) -> Iterator[Batch]:
    """Alice's folder on the login node."""
    found = Batch(cluster, folder="environment")
    yield found
    found.clean()


def test_no_variable_of_apptainers_changes_the_container(batch: Batch) -> None:
    names = ",".join(sorted(pair.split("=")[0] for pair in POISON))
    batch.write("shows.py", SHOWS)
    outputs = []
    for command in ("sbatch", "slipway sbatch --image=python/3.13"):
        batch.shell("rm -f ~/result")
        line = f"env {shlex.join(POISON)} {command} --parsable --mem=150M -o %j.out shows.py"
        job = batch.shell(f"{line} {names}").stdout.strip()
        assert batch.end(job) == End("COMPLETED", "0:0"), batch.output(job)
        assert batch.shell("cat ~/result; rm -f ~/result").stdout == "written"
        outputs.append(batch.output(job))
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == len(POISON)


def test_functions_odd_names_and_bytes_arrive(batch: Batch) -> None:
    names = "my.var,foo-bar,BASH_FUNC_greet%%,BYTES"
    batch.write("shows.py", SHOWS)
    outputs = []
    for command in ("sbatch", "slipway sbatch --image=python/3.13"):
        line = "greet() { echo hello; }; export -f greet; export BYTES=$'\\xff \\n\\xc3\\xbc';"
        line += f" env my.var=1 foo-bar=2 {command} --parsable --mem=150M -o %j.out shows.py"
        job = batch.shell(f"{line} {shlex.quote(names)}").stdout.strip()
        assert batch.end(job) == End("COMPLETED", "0:0"), batch.output(job)
        outputs.append(batch.output(job))
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 4


def test_slurm_works_however_it_is_started(batch: Batch) -> None:
    job = batch.submit(EVERYWHERE, "--image=debian/13")
    assert batch.end(job) == End("COMPLETED", "0:0"), batch.output(job)
    node, *numbers = batch.output(job).splitlines()
    assert node in ("n1", "n2")
    assert numbers == [job] * 5


def test_a_task_has_its_job_requeued(batch: Batch) -> None:
    """As submitit's checkpoint does."""
    script = (
        '#!/bin/sh\necho run $SLURM_RESTART_COUNT\n[ "$SLURM_RESTART_COUNT" ] && exit 0\n'
        "srun sh -c 'scontrol requeue $SLURM_JOB_ID'; sleep 60\n"
    )
    job = batch.submit(script, "--image=debian/13", "--requeue", "--open-mode=append")
    batch.wait_output(job, "run")
    batch.shell(f"sleep 5; scontrol update JobId={job} StartTime=now")
    assert batch.end(job, 200) == End("COMPLETED", "0:0")


def test_tmpdir_outside_of_tmp(batch: Batch) -> None:
    for node in ("n1", "n2"):
        batch.cluster.shell(node, "install -d -m 1777 /scratch-of-node")
    line = "TMPDIR=/scratch-of-node slipway sbatch --parsable --mem=200M -o %j.out"
    job = batch.shell(f"{line} --image=python/3.13", stdin=TEMPORARY).stdout.strip()
    assert batch.end(job) == End("COMPLETED", "0:0"), batch.output(job)
    assert batch.output(job).splitlines() == [
        "/scratch-of-node/",
        "/scratch-of-node",
        "/scratch-of-node/",
    ]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, batch: Batch) -> None:
    script = f"#!/bin/bash\nrm -f ran\nexec 7>&1 {closed}\nsrun touch ran\n/bin/true\n"
    job = batch.submit(script, "--image=debian/13")
    assert batch.end(job) == End("COMPLETED", "0:0"), batch.output(job)
    assert "Traceback" not in batch.output(job)
    assert batch.shell("ls ran").stdout == "ran\n"
    batch.write("closed.sh", "#!/bin/sh\n#SLIPWAY --image=debian/13\n#SBATCH --mem=60M\n")
    done = batch.shell(f"slipway sbatch -o /dev/null closed.sh {closed}")
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == batch.shell(f"sbatch -o /dev/null closed.sh {closed}").returncode

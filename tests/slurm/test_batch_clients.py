"""Programs that submit jobs, with `slipway sbatch` first in PATH: their jobs run in an image.

The programs are those of cluster/clients, started on the login node as their users start them; what
they do with sbatch itself, they do with an image.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.batch import Batch, End
from tests.support.cluster import Cluster, wait_for

FOLDER = Path(__file__).with_name("clients")
PACKAGES = "/srv/slipway/clients"
COMMANDS = ("sbatch", "srun", "salloc")
SECONDS = 300

pytestmark = pytest.mark.timeout(SECONDS + 100)


class Clients(Batch):
    """Alice's folder with the programs, and with our command under the names of Slurm's."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, folder="clients")
        links = "; ".join(f"ln -s /usr/local/bin/slipway bin/{name}" for name in COMMANDS)
        self.shell(f"mkdir bin && {links}")
        for file in FOLDER.iterdir():
            if file.is_file():
                self.write(file.name, file.read_text(encoding="utf-8"))

    def run(self, *words: str) -> str:
        """The output of a program that must succeed."""
        setup = f"export PATH={self.folder}/bin:$PATH PYTHONPATH={PACKAGES}"
        script = f"cd {self.folder} && {setup} && timeout {SECONDS} {shlex.join(words)}"
        line = ["exec", "--user", self.user, "login", "--", "bash", "-lc", script]
        done = self.cluster.attempt(*line, seconds=SECONDS + 30)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self._logs()}"
        return done.stdout

    def _logs(self) -> str:
        return self.shell("tail -n 40 logs/* .snakemake/slurm_logs/*/*/* 2> /dev/null; true").stdout

    def submitit(self, action: str) -> Any:
        """What submitit_jobs.py tells of an action."""
        return json.loads(self.run("python3", "submitit_jobs.py", action).splitlines()[-1])


@pytest.fixture(scope="module")
def clients(cluster: Cluster) -> Iterator[Clients]:
    """The programs, which clusters for tests have: `IMAGES=all make up`."""
    found = Clients(cluster)
    missing = found.shell(f"ls {PACKAGES}/submitit {PACKAGES}/snakemake {PACKAGES}/dask_jobqueue")
    assert missing.returncode == 0, f"IMAGES=all make up installs them: {missing.stderr}"
    yield found
    found.clean()


def test_submitit_submits_a_job(clients: Clients) -> None:
    assert clients.submitit("job") == [9, True]


def test_submitit_submits_an_array(clients: Clients) -> None:
    assert clients.submitit("array") == [[1, True], [4, True], [9, True]]


def test_submitit_checkpoints_a_job_and_requeues_it(clients: Clients) -> None:
    assert clients.submitit("checkpoint") == ["resumed", True]


def test_submitit_tells_that_the_time_is_over(clients: Clients) -> None:
    text = clients.submitit("timeout")
    assert "it has a result" not in text
    assert "timed" in text.lower()


def test_snakemake_runs_its_jobs_in_an_image(clients: Clients) -> None:
    options = f"--image=python/3.13 --mount={PACKAGES}:ro"
    # Two processes of snakemake are in each job: the one that it submits, and the step of that.
    resources = ("mem_mb=700", "runtime=5", "slurm_partition=main", "slurm_account=research")
    clients.run(
        "python3", "-m", "snakemake", "--executor", "slurm", "--jobs", "2", "--latency-wait", "30",
        "--slurm-init-seconds-before-status-checks", "2",
        "--default-resources", *resources, f"slurm_extra='{options}'",
    )  # fmt: skip
    lines = clients.shell("cat all.txt").stdout.splitlines()
    assert lines == ["1 in an image", "2 in an image"]


def test_dasks_workers_are_jobs_in_an_image(clients: Clients) -> None:
    found = json.loads(clients.run("python3", "dask_cluster.py").splitlines()[-1])
    assert [square for square, _, _ in found] == [0, 1, 4, 9]
    assert {in_image for _, in_image, _ in found} == {True}
    numbers = {number for _, _, number in found}
    assert len(numbers) == 1
    # The cluster ends its workers with scancel.
    assert clients.end(numbers.pop()).state in ("CANCELLED", "COMPLETED")


def task(clients: Clients, name: str, script: str) -> str:
    """Submit a task's folder as a workflow engine does; the job's number."""
    clients.shell(f"mkdir -p {name} && cp command.run {name}/.command.run")
    clients.shell(f"cat > {name}/.command.sh", stdin=script)
    said = clients.run("sh", "-c", f"cd {name} && sbatch .command.run")
    first, _, number = said.strip().rpartition(" ")
    assert first == "Submitted batch job"
    return number


def test_a_workflow_engines_task_leaves_its_files(clients: Clients) -> None:
    script = "#!/bin/bash -ue\n. /etc/os-release; echo $VERSION_ID; echo oops >&2; exit 3\n"
    number = task(clients, "fails", script)
    # As the engine looks for it, with a name that a format string of squeue's may cut.
    states = clients.run("squeue", "--noheader", "-o", "%i %t", "-t", "all", "-u", "alice")
    assert number in [line.split()[0] for line in states.splitlines()]
    assert clients.end(number) == End("FAILED", "3:0")
    files = "cd fails && cat .exitcode .command.out .command.err; ls -A"
    lines = clients.shell(files).stdout.splitlines()
    assert lines[:3] == ["312", "oops", ".command.begin"]
    assert ".signal" not in lines


def test_a_workflow_engine_cancels_its_task(clients: Clients) -> None:
    number = task(clients, "cancelled", "#!/bin/bash -ue\necho up > up\nsleep 300\n")
    wait_for("the task", lambda: clients.shell("ls cancelled/up").returncode == 0, 60)
    clients.run("scancel", number)
    assert clients.end(number).state == "CANCELLED"
    # Slurm calls it cancelled before the script has ended.
    left = "cat cancelled/.signal cancelled/.exitcode"
    wait_for("its files", lambda: clients.shell(left).stdout == "signal\n143", 40)


def test_a_workflow_engine_is_warned_before_the_end(clients: Clients) -> None:
    number = task(clients, "warned", "#!/bin/bash -ue\necho up > up\nsleep 300\n")
    wait_for("the task", lambda: clients.shell("ls warned/up").returncode == 0, 60)
    clients.run("scancel", "--batch", "--signal=USR2", number)  # as --signal B:USR2@30 does
    assert clients.end(number) == End("FAILED", "15:0")  # as sacct writes 128 + 15
    assert clients.shell("cat warned/.signal warned/.exitcode").stdout == "signal\n143"

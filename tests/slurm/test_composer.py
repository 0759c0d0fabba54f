"""Jobs submitted through the portal run on a real cluster, as whoever composed them."""

from __future__ import annotations

import uuid

import pytest

from tests.support.client import Api, Json
from tests.support.cluster import Cluster
from tests.support.composed_jobs import SCRIPT, in_home, submit_job, wait_output


def test_a_script_runs_as_its_owner_with_what_was_chosen(cluster: Cluster, alice: Api) -> None:
    name = f"it's {uuid.uuid4().hex[:8]} $HOME"
    resources: Json = {"cpus": 1, "memory": "100m"}
    number = submit_job(alice, name=name, resources=resources, options=["--output=%j.out"])
    assert wait_output(cluster, f"{number}.out", 3).splitlines() == [
        "alice",
        "/home/alice",
        f"task none of {name} on 1",
    ]


def test_a_file_is_submitted_from_its_folder(cluster: Cluster, alice: Api) -> None:
    folder = f"with blanks {uuid.uuid4().hex[:8]}"
    make = f"mkdir '{folder}' && printf '#!/bin/sh\\npwd\\n' > '{folder}/run me.sh'"
    in_home(cluster, make)
    number = submit_job(alice, script=None, path=f"~/{folder}/run me.sh")
    assert wait_output(cluster, f"'{folder}'/slurm-{number}.out") == f"/home/alice/{folder}\n"


def test_an_array_of_tasks_in_an_image(cluster: Cluster, alice: Api) -> None:
    script = "#!/usr/bin/env python3\nimport os\nprint(os.environ['SLURM_ARRAY_TASK_ID'])\n"
    number = submit_job(
        alice, script=script, image="python", array="0-2", options=["--output=%A_%a.out"],
        resources={"memory": "400m"},
    )  # fmt: skip
    for task in range(3):
        assert wait_output(cluster, f"{number}_{task}.out") == f"{task}\n"


def test_a_check_submits_nothing_and_tells_a_start(cluster: Cluster, alice: Api) -> None:
    def numbers() -> set[str]:
        words = ["--noheader", "--states=all", "--format=%F", "--user=alice"]
        return set(cluster.run("ctl", "squeue", *words).split())

    before = numbers()
    body = {"script": SCRIPT, "resources": {"memory": "100m"}, "test_only": True}
    assert " UTC" in alice.ask("POST", "/jobs", 200, json=body)["check"]
    assert numbers() <= before  # Slurm forgets earlier ones meanwhile


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"resources": {"memory": "60t"}}, "resources.memory"),
        ({"image": "python", "mounts": ["missing-folder"]}, "mounts"),
        ({"directory": "/nonexistent"}, "directory"),
        ({"options": ["--nonsense"]}, "options"),
        ({"script": "#!/bin/sh\n#SBATCH --partition=nowhere\n"}, "script"),
        ({"script": None, "path": "~/nothing.sh"}, "path"),
    ],
)
def test_what_slurm_refuses_names_its_field(alice: Api, body: Json, field: str) -> None:
    answer = alice.ask("POST", "/jobs", 422, json={"script": SCRIPT} | body)
    assert [error["field"] for error in answer["errors"]] == [field]


def test_more_cores_than_a_node_has_are_refused(cluster: Cluster, alice: Api) -> None:
    """One more: Slurm 26.05 accepts more than the whole partition has (PartitionConfig)."""
    cores = int(
        cluster.run("login", "sinfo", "--noheader", "--nodes=n1", "--Format=CPUs").split()[0]
    )
    body = {"script": SCRIPT, "resources": {"cpus": cores + 1}}
    answer = alice.ask("POST", "/jobs", 422, json=body)
    assert [error["field"] for error in answer["errors"]] == ["resources.cpus"]


def test_the_same_key_submits_once(cluster: Cluster, alice: Api) -> None:
    name = uuid.uuid4().hex
    headers = {"Idempotency-Key": name}
    body = {"script": SCRIPT, "name": name, "resources": {"memory": "100m"}}
    answers = [alice.ask("POST", "/jobs", 201, json=body, headers=headers) for _ in range(3)]
    numbers = {answer["job"]["id"] for answer in answers}
    assert len(numbers) == 1
    words = ["--noheader", "--states=all", "--format=%A", f"--name={name}"]
    assert cluster.run("ctl", "squeue", *words).split() == [*numbers]

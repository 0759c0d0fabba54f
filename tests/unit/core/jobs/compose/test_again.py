"""A job that is submitted again, as Slurm tells it."""

from __future__ import annotations

from typing import Any

import pytest

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.compose.again import StoredJob, same_job
from portal.core.jobs.job import Job, JobTexts
from portal.node.batch.request import Request
from portal.node.batch.submit.wrapped import batch_script

SCRIPT = b"#!/bin/bash\n#SBATCH --mem=1G\npython train.py\n"
RECORD = {"name": "seven", "resource_group": "main", "directory": "/data", "time_limit": 30}
RESOURCES = {"resources": {"cpus": 2, "memory": "2g"}}


def job(*, tasks: str = "", shards: int = 0, gpus: int = 0, **texts: str) -> Job:
    """A job of alice's; `texts`: what she wrote."""
    report = JobReport("7", "alice", JobState.COMPLETED, partition="main", cpus=2, memory_mb=2048,
                       time_limit=30, nodes=("n1",), shards=shards, gpus=gpus)  # fmt: skip
    found = JobTexts(**{"name": "seven", "directory": "/data"} | texts)
    return Job(report, array_id="7" if tasks else "", tasks=tasks, texts=found)


@pytest.mark.parametrize(
    ("command", "name", "path", "args"),
    [
        ("/a/run.sh x y", "run.sh", "/a/run.sh", ["x", "y"]),
        ("/a/run.sh", "seven", "/a/run.sh", []),
        ("/my dir/my job.sh x y", "my job.sh", "/my dir/my job.sh", ["x", "y"]),
        ("/my dir/my job.sh", "my job.sh", "/my dir/my job.sh", []),
        ("/a/run x/run y", "run", "/a/run", ["x/run", "y"]),
        ("/a/run.sh x y", "seven", "/a/run.sh", ["x", "y"]),
    ],
)
def test_a_path_and_arguments_are_told_apart(
    command: str, name: str, path: str, args: list[str]
) -> None:
    body = same_job(job(command=command, name=name), StoredJob())
    assert (body["path"], body.get("args", [])) == (path, args)


def test_a_file_is_asked_for_only_where_its_name_is_not_clear() -> None:
    asked: list[str] = []

    def is_in(path: str) -> bool:
        asked.append(path)
        return path == "/my dir/my job.sh"

    stored = StoredJob(SCRIPT, is_in)
    body = same_job(job(command="/my dir/my job.sh x"), stored)
    assert (body["path"], body["args"]) == ("/my dir/my job.sh", ["x"])
    assert asked == ["/my", "/my dir/my", "/my dir/my job.sh"]
    same_job(job(command="/my dir/my job.sh x", name="my job.sh"), stored)
    same_job(job(command="/a/run.sh"), stored)
    assert len(asked) == 3


@pytest.mark.parametrize("command", ["", "/dev/stdin a b", "/dev/fd/63", "/proc/self/fd/9"])
def test_of_a_script_without_a_file_slurm_has_the_text(command: str) -> None:
    body = same_job(job(command=command), StoredJob(SCRIPT))
    args = command.split()[1:]
    wanted: dict[str, Any] = RECORD | RESOURCES | {"script": SCRIPT.decode()}
    assert body == (wanted | {"args": args} if args else wanted)
    assert same_job(job(), StoredJob()) == RECORD | RESOURCES


@pytest.mark.parametrize(
    ("command", "name", "args"),
    [("my job.sh x y", "my job.sh", ["x", "y"]), ("run.sh x", "seven", ["x"]), ("", "seven", [])],
)
def test_a_job_in_an_image_is_one_again(command: str, name: str, args: list[str]) -> None:
    request = Request()
    request.image, request.name, request.shm_mb = "/i/p.sif", "python/3.13", 512
    request.binds = [["/scratch", "rw"], ["/data", "ro"], ["/home/b/storage/x", "rw", "bob"]]
    stored = StoredJob(batch_script(SCRIPT, request), site_folders=("/scratch",))
    body = same_job(job(command=command, name=name, tasks="0-19%4"), stored)
    assert body.get("args", []) == args
    body.pop("args", None)
    assert body == RECORD | {
        "name": name,
        "array": "0-19%4",
        "script": SCRIPT.decode(),
        "image": "python/3.13",
        "mounts": [{"folder": "bob/x", "read_only": False}],
        "options": ["--mount=/data:ro"],
        "resources": {"cpus": 2, "memory": "2g", "shared_memory": "512m"},
    }


@pytest.mark.parametrize(
    ("line", "shards", "gpus", "options"),
    [
        ("", 2, 0, ["--gres=shard:2"]),
        ("", 0, 1, ["--gres=gpu:1"]),
        ("#SLIPWAY --fgpu=0.5\n", 2, 0, []),
        ("#SBATCH --gres=shard:2\n", 2, 0, []),
    ],
)
def test_gpus_of_the_command_line_are_asked_for_again(
    line: str, shards: int, gpus: int, options: list[str]
) -> None:
    script = f"#!/bin/sh\n{line}nvidia-smi\n".encode()
    body = same_job(job(shards=shards, gpus=gpus), StoredJob(script))
    assert body.get("options", []) == options


def test_what_a_request_cannot_have_is_left_out() -> None:
    body = same_job(job(directory="/a\nb"), StoredJob(b"#!/bin/sh\n\xff\n"))
    assert set(body) == {"name", "resource_group", "time_limit", "resources"}

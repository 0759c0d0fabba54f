"""Patterns in the names of output files; the expected names are those that Slurm 24.11 wrote."""

from __future__ import annotations

import pytest

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job
from portal.core.jobs.output_paths import expand_path, insert_name

PLAIN = Job(JobReport("17", "alice", JobState.RUNNING, nodes=("n1.example.org",)))
TASK = Job(JobReport("19", "alice", JobState.RUNNING), array_id="19", tasks="13")
WAITING = Job(JobReport("21", "bob", JobState.PENDING), array_id="21", tasks="2-5%2")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("J%J-s%s-t%t-n%n-N%N-b%b-%4j-%%-%u-%A", "J17-sbatch-t0-n0-Nn1-b4-0017-%-alice-17"),
        ("lit\\%j-x", "lit%j-x"),
        ("%z%", "%z%"),
        ("slurm-%j.out", "slurm-17.out"),
        ("%99j", "0000000017"),
    ],
)
def test_a_job(pattern: str, path: str) -> None:
    assert expand_path(pattern, PLAIN) == path


def test_a_task_of_an_array() -> None:
    assert expand_path("b%b-%4a-%10A", TASK) == "b3-0013-0000000019"


@pytest.mark.parametrize("pattern", ["out-%a", "%N", "%j"])
def test_what_is_not_known_yet_is_not_guessed(pattern: str) -> None:
    assert expand_path(pattern, WAITING) == ""
    assert expand_path("out-%A", WAITING) == "out-21"


def test_the_name_is_inserted_as_it_is() -> None:
    assert expand_path(insert_name("%x-%j", "50%j/a"), PLAIN) == "50%j/a-17"
    assert insert_name("lit\\%x", "a") == "lit\\%x"


def test_paths_that_cannot_exist_are_not_built() -> None:
    """A thousand tasks with 4 KB of %x and a name of 1 KB once were gigabytes."""
    assert insert_name("/" + "%x" * 1300, "n" * 1000) == ""
    assert insert_name("/%x/%x", "n" * 2047) == f"/{'n' * 2047}/{'n' * 2047}"
    assert insert_name("/%x/%x", "n" * 2048) == ""
    assert expand_path("/" + "%j" * 200, PLAIN) == "/" + "17" * 200
    assert expand_path("/" + "%j" * 201, PLAIN) == ""

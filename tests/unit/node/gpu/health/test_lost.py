"""Processes of jobs that are over and have lost their slurmstepd."""

from __future__ import annotations

import pytest

from portal.node.gpu.health.lost import end_lost
from portal.node.gpu.slurm import NodeJob, NoSuchJob, SlurmError
from tests.unit.node.gpu.health.conftest import Machine

OVER = NodeJob(1001, 1001, True, ())


def sweep(machine: Machine, *answers: NodeJob | Exception) -> tuple[list[str], list[int]]:
    """What was said, and the PIDs that were ended, if Slurm answers so for job 12."""
    ended: list[int] = []
    left = list(answers)

    def ask(job: int, node: str) -> NodeJob:
        assert (job, node) == (12, "n1")
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def end(pid: int, job: int) -> bool:
        ended.append(pid)
        return True

    return end_lost(machine.look, "n1", end, [], ask, lambda seconds: None), ended


def test_processes_of_a_job_that_is_over_are_ended(machine: Machine) -> None:
    for pid in (70, 71):
        machine.proc.add(pid, f"job_12/step_0/user/task_{pid}")
    said, ended = sweep(machine, OVER)
    assert said == ["job 12 is over and has no slurmstepd: ended 2 processes"]
    assert ended == [70, 71]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (NodeJob(1001, 1001, False, ()), []),
        (NodeJob(1001, 1001, True, (), completing=True), []),
        (NoSuchJob("Invalid job id"), ["Slurm does not know it: left alone"]),
        (SlurmError("timed out"), ["Slurm does not answer (timed out): left alone"]),
    ],
)
def test_nothing_else_is_ended(
    machine: Machine, answer: NodeJob | Exception, words: list[str]
) -> None:
    machine.proc.add(70, "job_12/step_0/user/task_0")
    said, ended = sweep(machine, answer)
    assert ended == []
    assert [text.partition(", and ")[2] for text in said] == words


def test_nobody_asks_about_a_job_with_its_slurmstepd(machine: Machine) -> None:
    machine.proc.add(70, "job_12/step_0/user/task_0")
    machine.proc.add(71, "job_12/step_0/slurm", uid=0)
    assert sweep(machine) == ([], [])


def test_a_slurmstepd_that_comes_in_time_is_none_that_is_lost(machine: Machine) -> None:
    machine.proc.add(70, "job_12/step_0/user/task_0")

    def start(seconds: float) -> None:
        machine.proc.add(71, "job_12/step_0/slurm", uid=0)

    def fail(job: int, node: str) -> NodeJob:
        raise AssertionError("Slurm was asked")

    assert end_lost(machine.look, "n1", lambda *_: True, [], fail, start) == []


@pytest.mark.parametrize("answer", [NoSuchJob("Invalid job id"), SlurmError("timed out")])
def test_jobs_that_slurm_does_not_know_keep_no_other_waiting(
    machine: Machine, answer: Exception
) -> None:
    """A few are asked about at a time: each check the same ones, as long as they were there."""
    for job in range(100, 110):
        machine.proc.add(1000 + job, f"job_{job}/step_0/user/task_0")
    unclear: list[int] = []
    asked: list[int] = []

    def ask(job: int, node: str) -> NodeJob:
        asked.append(job)
        if job == 109:
            return OVER
        raise answer

    def check() -> list[str]:
        return end_lost(machine.look, "n1", lambda *_: True, unclear, ask, lambda seconds: None)

    checks = [check() for _ in range(4)]
    assert asked[:10] == list(range(100, 110))
    assert checks[3] == ["job 109 is over and has no slurmstepd: ended 1 processes"]
    machine.proc.remove(1109)
    for _ in range(3):
        assert check() == []  # it was said once
    assert asked[10:19] == list(range(100, 109))

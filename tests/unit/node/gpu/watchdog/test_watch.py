"""The watchdog: what it records, which processes it ends, and what it survives."""

from __future__ import annotations

from typing import Any

import pytest

from portal.node.common.fgpu import MIB
from portal.node.gpu import slices
from portal.node.gpu.slices import JobSlice, Part
from portal.node.gpu.slurm import NodeJob, NoSuchJob, SlurmError
from portal.node.gpu.watchdog.jobs import GONE_AFTER
from tests.unit.node.gpu.node import answer
from tests.unit.node.gpu.watchdog.conftest import NOW, Node, killed


def test_usage_is_measured_for_each_job(node: Node) -> None:
    node.job(12)
    node.job(13)
    one, two = node.process(12, 500), node.process(12, 100)
    node.process(99, 4000)  # of no job here
    node.nvml.share["GPU-0"] = {one.pid: 12.0, two.pid: 0.54}
    node.watch.poll(NOW)
    assert node.usage(12) == {
        "time": 1795270421.2,
        "memory": 600 * MIB,
        "sm_percent": 12.5,
        "processes": 2,
        "kills": 0,
    }
    assert node.usage(13)["memory"] == 0
    assert node.usage(13)["sm_percent"] == 0.0
    load = (node.jobs / "12" / "load").read_text()
    assert f"gpu=GPU-0\nbusy=125\nmemory={600 * MIB}\ncharge=1000\npercent=25\n" in load
    node.look(2)
    assert len(node.logged) == 1
    assert "holds 4000 MiB of GPU-0, and the job has no slice here" in node.logged[0]


def test_a_gpu_that_does_not_report_its_load(node: Node) -> None:
    node.job(12)
    node.process(12, 10)
    node.nvml.share["GPU-0"] = None
    node.watch.poll(NOW)
    assert node.usage(12)["sm_percent"] is None


def test_kills_are_remembered_by_the_next_watchdog_but_not_by_the_next_run(node: Node) -> None:
    node.job(12)
    _ = node.process(12, 4000)
    node.look(2)
    again = node.watchdog()
    node.nvml.held = {}
    again.poll(NOW + 2)
    assert node.usage(12)["kills"] == 1
    node.job(12)  # requeued
    again.poll(NOW + 3)
    assert node.usage(12)["kills"] == 0


def test_a_lost_driver_is_logged_once_and_retried(node: Node) -> None:
    node.job(12)
    node.nvml.broken = {"driver"}
    node.watch.poll(NOW)
    node.watch.poll(NOW + 1)
    assert node.logged == ["cannot watch, retrying: driver is lost"]
    node.nvml.broken = set()
    node.watch.poll(NOW + 2)
    assert node.logged[1:] == ["watching again"]
    assert node.usage(12)["memory"] == 0


def test_limits_are_enforced_when_another_gpu_is_lost(node: Node) -> None:
    node.job(12)
    node.job(13, JobSlice("limiter", (Part("GPU-1", 2048 * MIB, 25),)))
    child = node.process(12, 4000)
    node.nvml.broken = {"GPU-1"}
    node.look(2)
    assert killed(child)
    assert not (node.jobs / "13" / "usage.json").exists()
    assert node.logged[0] == "cannot watch, retrying: GPU-1 is lost"


def test_the_driver_is_released_when_no_job_needs_it(node: Node) -> None:
    node.job(12)
    node.watch.poll(NOW)
    assert node.nvml.open == 1
    slices.remove(node.jobs, 12)
    node.watch.poll(NOW + 1)
    assert node.nvml.open == 0


def test_a_job_without_a_slice_is_left_alone(node: Node) -> None:
    slices.write(node.jobs, 12, (0, 0), {"refused": "no driver\n"})
    node.watch.poll(NOW)
    assert node.logged == []
    assert node.nvml.open == 0


def _gone(job: int, name: str) -> NodeJob:
    raise NoSuchJob("Invalid job id specified")


def _silent(job: int, name: str) -> NodeJob:
    raise SlurmError("Unable to contact slurm controller")


@pytest.mark.parametrize(
    ("ask", "stays"),
    [(answer(), True), (_silent, True), (answer(over=True), False), (_gone, False)],
)
def test_folders_of_ended_jobs_are_removed_once_slurm_confirms(
    node: Node, ask: Any, stays: bool
) -> None:
    node.ask = ask
    node.job(12)
    node.watch.poll(NOW)
    node.watch.poll(NOW + GONE_AFTER)
    assert (node.jobs / "12").exists()
    node.watch.poll(NOW + GONE_AFTER + 1)
    assert (node.jobs / "12").exists() is stays


def test_a_job_whose_epilog_is_faster_does_not_end_the_watchdog(node: Node) -> None:
    def ended_meanwhile(job: int, name: str) -> NodeJob:
        slices.remove(node.jobs, job)
        return answer()(job, name)

    node.ask = ended_meanwhile
    node.job(12)
    node.watch.poll(NOW)
    node.watch.poll(NOW + GONE_AFTER + 1)
    assert not (node.jobs / "12").exists()
    assert node.logged == []


def test_slurm_is_not_queried_about_a_running_job(node: Node) -> None:
    node.ask = _gone
    node.job(12)
    (node.cgroups / "system.slice" / "slurmstepd.scope" / "job_12").mkdir(parents=True)
    node.watch.poll(NOW)
    node.watch.poll(NOW + 10 * GONE_AFTER)
    assert (node.jobs / "12").exists()


def test_incomplete_folders_are_removed(node: Node) -> None:
    half = node.jobs / ".new-12"
    half.mkdir(parents=True)
    node.watch.poll(half.stat().st_mtime + GONE_AFTER + 1)
    assert not half.exists()

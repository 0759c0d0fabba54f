"""The watchdog: what it records, which processes it ends, and what it survives."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from portal.core.cluster.fgpu import MIB
from portal.gpu import slices
from portal.gpu.slices import JobSlice, Part
from portal.gpu.slurm import NodeJob, NoSuchJob, SlurmError
from portal.gpu.watchdog import watch
from portal.gpu.watchdog.jobs import GONE_AFTER
from tests.unit.gpu.node import FakeNvml, answer, gpu

NOW = 1_795_270_421.25
MARGIN = 256 * MIB
QUARTER = JobSlice("limiter", (Part("GPU-0", 2048 * MIB, 25),))


class Node:
    """A node with jobs, processes and a watchdog."""

    def __init__(self, folder: Path) -> None:
        self.jobs = folder / "jobs"
        self.proc = folder / "proc"
        self.cgroups = folder / "cgroup"
        self.nvml = FakeNvml(gpu(0), gpu(1))
        self.logged: list[str] = []
        self.ask = answer()
        self.running: list[subprocess.Popen[bytes]] = []
        self.watch = self.watchdog()

    def watchdog(self) -> watch.Watch:
        """A new watchdog, as after a restart."""
        return watch.Watch(
            MARGIN,
            "n1",
            jobs=self.jobs,
            proc=self.proc,
            cgroups=self.cgroups,
            connect=self.nvml.connect,
            ask=self._asked,
            log=self.logged.append,
        )

    def _asked(self, job: int, name: str) -> NodeJob:
        return self.ask(job, name)

    def job(self, job: int, slice_: JobSlice = QUARTER) -> None:
        """Run Prolog for a job."""
        owner = os.getuid(), os.getgid()
        slices.write(self.jobs, job, owner, {"slice": slice_.text()})

    def process(self, job: int, memory_mb: int, gpu: str = "GPU-0") -> subprocess.Popen[bytes]:
        """A real process that belongs to a job according to /proc."""
        child = subprocess.Popen(["sleep", "60"])
        self.running.append(child)
        place = self.proc / str(child.pid)
        place.mkdir(parents=True)
        self.move(child.pid, job)
        (place / "comm").write_text("python3\n")
        (place / "stat").write_text(f"{child.pid} (py (t) on) S " + " ".join(["1"] * 40))
        self.nvml.held.setdefault(gpu, {})[child.pid] = memory_mb * MIB
        return child

    def move(self, pid: int, job: int) -> None:
        """Set the process's cgroup."""
        path = f"/system.slice/slurmstepd.scope/job_{job}/step_batch/user/task_0"
        (self.proc / str(pid) / "cgroup").write_text(f"0::{path}\n")

    def usage(self, job: int) -> dict[str, Any]:
        """The usage that the session reads."""
        found: dict[str, Any] = json.loads((self.jobs / str(job) / "usage.json").read_text())
        return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    found = Node(tmp_path)
    yield found
    for child in found.running:
        child.kill()
        child.wait()


def _killed(child: subprocess.Popen[bytes]) -> bool:
    try:
        return child.wait(0.5) == -9
    except subprocess.TimeoutExpired:
        return False


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
    assert node.logged == []


def test_a_gpu_that_does_not_report_its_load(node: Node) -> None:
    node.job(12)
    node.process(12, 10)
    node.nvml.share["GPU-0"] = None
    node.watch.poll(NOW)
    assert node.usage(12)["sm_percent"] is None


def test_the_margin_is_allowed_and_a_byte_more_is_not(node: Node) -> None:
    node.job(12)
    child = node.process(12, 2048 + 256)
    node.watch.poll(NOW)
    assert not _killed(child)
    node.nvml.held["GPU-0"][child.pid] += 1
    node.watch.poll(NOW + 1)
    assert _killed(child)
    assert "ended python3" in node.logged[0]
    node.watch.poll(NOW + 2)  # the driver shows it a moment longer
    assert node.usage(12)["kills"] == 1
    assert len(node.logged) == 1


def test_the_largest_process_is_ended_first_and_the_neighbour_stays(node: Node) -> None:
    node.job(12)
    node.job(13)
    small, greedy = node.process(12, 300), node.process(12, 4000)
    neighbour = node.process(13, 2048)
    node.watch.poll(NOW)
    assert _killed(greedy)
    assert not _killed(small)
    assert not _killed(neighbour)
    assert (node.usage(12)["kills"], node.usage(13)["kills"]) == (1, 0)


def test_many_small_processes_do_not_bypass_the_limit(node: Node) -> None:
    node.job(12)
    children = [node.process(12, 1000) for _ in range(4)]
    node.watch.poll(NOW)
    assert sorted(_killed(child) for child in children) == [False, False, True, True]


def test_whole_gpus_have_no_limit(node: Node) -> None:
    node.job(12, JobSlice("none", (Part("GPU-0", 0, 100),)))
    child = node.process(12, 8000)
    node.watch.poll(NOW)
    assert not _killed(child)


def test_a_reused_pid_is_not_ended(node: Node) -> None:
    node.job(12)
    child = node.process(12, 4000)
    watchdog = node.watchdog()
    name = watchdog._name

    def reused(pid: int) -> str:
        node.move(pid, 77)
        return name(pid)

    watchdog._name = reused  # type: ignore[method-assign]
    watchdog.poll(NOW)
    assert not _killed(child)


def test_kills_are_remembered_by_the_next_watchdog_but_not_by_the_next_run(node: Node) -> None:
    node.job(12)
    _ = node.process(12, 4000)
    node.watch.poll(NOW)
    again = node.watchdog()
    node.nvml.held = {}
    again.poll(NOW + 1)
    assert node.usage(12)["kills"] == 1
    node.job(12)  # requeued
    again.poll(NOW + 2)
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
    node.watch.poll(NOW)
    assert _killed(child)
    assert not (node.jobs / "13" / "usage.json").exists()
    assert node.logged[-1] == "cannot watch, retrying: GPU-1 is lost"


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


def test_there_is_one_watchdog(tmp_path: Path) -> None:
    jobs = tmp_path / "gpu" / "jobs"
    assert not watch.is_running(jobs)
    first = watch.lock(jobs)
    assert first is not None
    assert watch.is_running(jobs)
    first.close()
    assert not watch.is_running(jobs)


def test_a_watchdog_waits_while_a_check_looks_for_it(tmp_path: Path) -> None:
    """Before, a node's check could end a watchdog that was just starting."""
    jobs = tmp_path / "gpu" / "jobs"
    looking = watch.lock(jobs)
    assert looking is not None
    assert watch.lock(jobs) is None
    Timer(0.2, looking.close).start()
    held = watch.lock(jobs, seconds=20)
    assert held is not None
    held.close()


def test_only_root_can_open_the_lock(tmp_path: Path) -> None:
    """M3: every user could open it, and so lock it."""
    jobs = tmp_path / "gpu" / "jobs"
    held = watch.lock(jobs)
    assert held is not None
    folder = jobs.parent / "watch"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "lock")]
    assert modes == [0o700, 0o600]
    held.close()


def test_user_locks_do_not_stop_the_watchdog(tmp_path: Path) -> None:
    """M3: the lock of an earlier version, and one in a folder with access for all."""
    jobs = tmp_path / "gpu" / "jobs"
    folder = jobs.parent / "watch"
    folder.mkdir(parents=True, mode=0o755)
    folder.chmod(0o755)
    for path in (jobs.parent / "watch.lock", folder / "lock"):
        path.touch(0o644)
    with (jobs.parent / "watch.lock").open() as one, (folder / "lock").open() as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        fcntl.flock(two, fcntl.LOCK_EX)
        held = watch.lock(jobs)
        assert held is not None
        assert watch.is_running(jobs)
        held.close()
    assert [path.name for path in jobs.parent.iterdir()] == ["watch"]

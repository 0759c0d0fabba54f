"""Slurm's health check: what it drains, what it resumes, and what it leaves to others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.node.common.fgpu import GpuKind
from portal.node.gpu.health import node as module
from portal.node.gpu.health.node import Node, Slurm, shares_gpus
from portal.node.gpu.slurm import Node as Known
from portal.node.gpu.slurm import NodeJob, SlurmError
from tests.support.paths import ROOT
from tests.unit.node.gpu.health.conftest import Machine, mount
from tests.unit.node.gpu.node import DEMO, MIG, settings_file


class Site:
    """A node, its slurmctld and its watchdog."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self.folder = folder
        self.known = Known(False, "")
        self.updates: list[tuple[str, ...]] = []
        self.down = False
        self.mute = False
        self.asked = 0
        self.problem = ""
        self.shares = True
        self.now = 1000.0

    def node(self) -> Node:
        """The program, as Slurm starts it each time."""
        return Node(
            "n1",
            state=self.folder / "state",
            proc=self.machine.proc.folder,
            fuse=self.machine.fuse,
            commands=Slurm(self._job, self._node, self._update),
            watch_problem=lambda: self.problem,
            shares=lambda: self.shares,
            pause=self._pause,
            clock=lambda: self.now,
        )

    def _pause(self, seconds: float) -> None:
        self.now += seconds

    def _job(self, job: int, node: str) -> NodeJob:
        return NodeJob(1001, 1001, True, ())

    def _node(self, name: str) -> Known:
        self.asked += 1
        if self.down:
            raise SlurmError("Unable to contact slurm controller")
        return self.known

    def _update(self, name: str, state: str, reason: str = "") -> None:
        self.updates.append((name, state, reason))
        self.known = Known(state == "DRAIN", reason)
        if self.mute:
            raise SlurmError("timed out")


@pytest.fixture
def site(machine: Machine, tmp_path: Path) -> Site:
    return Site(machine, tmp_path)


GONE = "the GPU watchdog does not run"


def test_a_node_that_nobody_watches_is_drained_and_resumed(site: Site) -> None:
    assert site.node().health() == []
    site.problem = GONE
    assert site.node().health() == [f"drained n1: {GONE}"]
    assert site.updates == [("n1", "DRAIN", f"slipway: {GONE}")]
    assert site.node().health() == []
    site.problem = ""
    assert site.node().health() == [f"resumed n1, whose reason was: slipway: {GONE}"]
    assert site.updates[1:] == [("n1", "UNDRAIN", "")]


def test_slurm_is_not_asked_while_nothing_changes(site: Site) -> None:
    for _ in range(5):
        site.node().health()
    assert site.asked == 1


def test_a_drain_of_ours_from_before_a_reboot_is_taken_back(site: Site) -> None:
    site.known = Known(True, "slipway: the GPU watchdog does not run")
    site.node().health()
    assert site.updates == [("n1", "UNDRAIN", "")]


@pytest.mark.parametrize(
    "reason", ["disk", "Kill task failed (JobId=12 StepId=0)", "not slipway: x"]
)
def test_the_drains_of_others_stay(site: Site, reason: str) -> None:
    site.known = Known(True, reason)
    site.node().health()
    site.problem = GONE
    site.node().health()
    site.problem = ""
    site.node().health()
    assert site.updates == []


def test_a_node_that_was_resumed_by_hand_is_drained_again(site: Site) -> None:
    site.problem = GONE
    site.node().health()
    site.known = Known(False, "")
    site.node().health()
    assert len(site.updates) == 2


def test_a_restart_of_the_watchdog_drains_nothing(site: Site) -> None:
    answers = iter([GONE, GONE, ""])
    site_node = site.node()
    site_node._problem = lambda: next(answers)
    assert site_node.health() == []
    assert site.updates == []


def test_a_node_without_shares_needs_no_watchdog(site: Site) -> None:
    site.problem, site.shares = GONE, False
    assert site.node().health() == []
    assert site.updates == []


def test_a_silent_slurm_is_asked_again(site: Site) -> None:
    site.problem, site.down = GONE, True
    assert site.node().health() == ["watched: Unable to contact slurm controller"]
    site.down = False
    assert site.node().health() == [f"drained n1: {GONE}"]


def test_a_drain_whose_answer_was_lost_is_taken_back(site: Site) -> None:
    assert site.node().health() == []
    site.problem, site.mute = GONE, True
    assert site.node().health() == ["watched: timed out"]
    site.problem, site.mute = "", False
    assert site.node().health() == [f"resumed n1, whose reason was: slipway: {GONE}"]


def test_a_check_that_takes_long_leaves_the_rest_to_the_next(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """slurmd ends it after a minute."""

    def slow(*_: object) -> list[str]:
        site.now += 29
        return ["slow"]

    monkeypatch.setattr(Node, "_free", slow)
    site.problem = GONE
    assert site.node().health() == ["slow"]
    assert site.updates == []


def test_one_parts_failure_is_not_the_others(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("od\nd\x1b[2J")

    monkeypatch.setattr(module, "Unkillable", fail)
    monkeypatch.setattr(module, "end_lost", fail)
    site.problem = GONE
    said = site.node().health()
    assert said == ["free: od\\nd\\x1b[2J", f"drained n1: {GONE}", "end_lost: od\\nd\\x1b[2J"]


def test_an_unreadable_state_is_a_new_one(site: Site) -> None:
    (site.folder / "state").mkdir()
    (site.folder / "state" / "known.json").write_bytes(b"\xff{")
    site.problem = GONE
    assert site.node().health() == [f"drained n1: {GONE}"]


def _stuck(site: Site) -> None:
    site.machine.proc.add(70, "job_12/step_0/user/task_0", killed=True, mounts=mount(48))
    site.machine.connect(48, 1001, 70)


def test_what_cannot_be_killed_is_freed(site: Site) -> None:
    _stuck(site)
    assert "aborted FUSE connection 48" in site.node().health()[0]
    assert site.updates == []


def test_a_drain_is_taken_back_however_long_freeing_took(site: Site) -> None:
    """A process with so many mounts that a check cannot abort all of their connections."""
    _stuck(site)
    site.node().unkillable(12)
    for _ in range(4):
        site.now += 500
        site.machine.proc.add(70, "job_12/step_0/user/task_0", killed=True, mounts=mount(48))
        site.machine.connect(48, 1001, 70)
        assert "aborted FUSE connection 48" in site.node().health()[0]
    site.known = Known(True, "Kill task failed (JobId=12 StepId=0)")
    assert site.node().health() == ["resumed n1: what could not be killed of job 12 has ended"]


def test_a_step_whose_job_goes_on_is_freed_at_the_second_check(site: Site) -> None:
    _stuck(site)
    site.machine.proc.add(71, "job_12/step_batch/user/task_0")
    site.machine.proc.add(72, "job_12/step_batch/slurm", uid=0)
    assert site.node().health() == []
    assert "aborted FUSE connection 48" in site.node().health()[0]


@pytest.mark.parametrize("reason", ["Kill task failed", "Kill task failed (JobId=12 StepId=0)"])
def test_slurms_drain_for_a_freed_step_is_taken_back(site: Site, reason: str) -> None:
    _stuck(site)
    (said,) = site.node().unkillable(12)
    assert "aborted FUSE connection 48" in said
    site.known = Known(True, reason)
    assert site.node().health() == ["resumed n1: what could not be killed of job 12 has ended"]
    assert site.updates == [("n1", "UNDRAIN", "")]
    site.known = Known(True, reason)  # of another step that nothing was done for
    assert site.node().health() == []


@pytest.mark.parametrize(
    ("reason", "later"),
    [
        ("Kill task failed (JobId=13 StepId=0)", 0.0),
        ("Kill task failed (JobId=123 StepId=0)", 0.0),
        ("Kill task failed, by an administrator", 0.0),
        ("disk", 0.0),
        ("Kill task failed (JobId=12 StepId=0)", 700.0),
    ],
)
def test_other_drains_are_not(site: Site, reason: str, later: float) -> None:
    _stuck(site)
    site.node().unkillable(12)
    site.known = Known(True, reason)
    site.now += later
    assert site.node().health() == []
    assert site.updates == []


def test_a_job_that_still_cannot_be_killed_keeps_its_drain(site: Site) -> None:
    _stuck(site)
    site.node().unkillable(12)
    site.machine.proc.add(75, "job_12/step_0/user/task_0", killed=True)
    site.known = Known(True, "Kill task failed (JobId=12 StepId=0)")
    site.node().health()
    assert site.updates == []


def test_only_the_jobs_own_processes_are_freed(site: Site) -> None:
    _stuck(site)
    assert site.node().unkillable(13) == []
    assert site.machine.aborted == []


@pytest.mark.parametrize(
    ("kinds", "device", "shares"),
    [((DEMO,), True, True), ((DEMO,), False, False), ((MIG,), True, False), ((), True, False)],
)
def test_who_shares_gpus(
    tmp_path: Path, kinds: tuple[GpuKind, ...], device: bool, shares: bool
) -> None:
    if device:
        (tmp_path / "nvidia0").touch()
    assert shares_gpus(settings_file(tmp_path, *kinds), tmp_path) is shares
    assert not shares_gpus(tmp_path / "none.json", tmp_path)


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, str], tuple[int, str, str]]:
    """Runs one of Slurm's programs with a command of that text; returns what was logged, too."""

    def run(name: str, command: str) -> tuple[int, str, str]:
        for program, text in (("slipway-gpu", command), ("logger", "cat >> LOG")):
            file = tmp_path / program
            file.write_text(f"#!/bin/sh\n{text.replace('LOG', str(tmp_path / 'log'))}\n")
            file.chmod(0o755)
        path = os.environ["PATH"]
        done = subprocess.run(
            [ROOT / "slurm_plugins" / name],
            env={"PATH": f"{tmp_path}:{path}"},
            capture_output=True,
            text=True,
            check=False,
        )
        log = tmp_path / "log"
        return done.returncode, done.stdout, log.read_text() if log.exists() else ""

    return run


@pytest.mark.parametrize(
    ("name", "word"), [("health.sh", "health"), ("unkillable.sh", "unkillable")]
)
def test_slurms_programs(
    script: Callable[[str, str], tuple[int, str, str]], name: str, word: str
) -> None:
    assert script(name, "exit 0") == (0, "", "")
    assert script(name, 'echo "did $1"') == (0, f"did {word}\n", f"did {word}\n")
    escaped = r"printf '%s\n' 'a\nb\cd'"
    assert script(name, escaped)[1] == "a\\nb\\cd\n"
    code, said, _ = script(name, "echo broken >&2; exit 1")
    assert (code, said) == (0, f"{word} failed: broken\n")

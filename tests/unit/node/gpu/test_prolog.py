"""Prolog and Epilog: a slice before any process of the user, and never a failed node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.node.common.gres import Gres
from portal.node.gpu import memory
from portal.node.gpu import prolog as module
from portal.node.gpu.prolog import epilog, prolog
from portal.node.gpu.slurm import NodeJob, SlurmError
from tests.unit.node.gpu.node import DEMO, FakeNvml, answer, gpu, settings_file

SHARD = Gres("shard", "", 2, ((2, 4),))
JOB = {"SLURM_JOB_ID": "12", "SLURMD_NODENAME": "n1", "SLURM_JOB_GPUS": "0"}
PLUGINS = Path(__file__).parents[4] / "slurm_plugins"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return settings_file(tmp_path, DEMO)


def test_the_slice_is_from_slurm_and_not_from_the_environment(jobs: Path, file: Path) -> None:
    nvml = FakeNvml(gpu(0))
    mine = {"SLURM_SHARDS_ON_NODE": "4", "SLURM_JOB_UID": "0"}
    prolog(JOB | mine, jobs=jobs, file=file, ask=answer(SHARD), connect=nvml.connect)
    assert "memory=4294967296\nsm=50\n" in (jobs / "12" / "slice").read_text()
    assert (jobs / "12" / "counters").stat().st_uid == os.getuid()
    assert nvml.open == 0
    epilog(JOB, jobs)
    epilog(JOB, jobs)
    assert list(jobs.iterdir()) == []


def test_a_job_without_a_gpu_queries_nothing(jobs: Path) -> None:
    def fail(job: int, node: str) -> NodeJob:
        raise AssertionError("Slurm was asked")

    prolog({"SLURM_JOB_ID": "12"}, jobs=jobs, ask=fail)
    assert not jobs.exists()


def test_missing_settings_or_driver_are_a_reason(jobs: Path, file: Path, tmp_path: Path) -> None:
    ask = answer(SHARD)
    broken = FakeNvml(gpu(0))
    broken.broken = {"driver"}
    for nvml, where, why in (
        (broken, file, "driver is lost"),
        (FakeNvml(gpu(0)), tmp_path / "none", "FileNotFoundError"),
        (FakeNvml(), file, "shows 0 only"),
    ):
        prolog(JOB, jobs=jobs, file=where, ask=ask, connect=nvml.connect)
        assert why in (jobs / "12" / "refused").read_text()
        assert not (jobs / "12" / "slice").exists()


@pytest.mark.parametrize("whole", [False, True])
def test_a_full_file_system_is_a_reason_and_affects_no_other_job(
    jobs: Path, file: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """L1: an OSError kept what was there before."""

    def full(place: Path, size: int) -> None:
        raise OSError(28, "No space left on device")

    ask = answer(Gres("gpu", "", 1) if whole else SHARD)
    nvml = FakeNvml(gpu(0))
    prolog(JOB, jobs=jobs, file=file, ask=ask, connect=nvml.connect)
    monkeypatch.setattr(memory, "mount", full)
    prolog(JOB, jobs=jobs, file=file, ask=ask, connect=nvml.connect)
    assert not (jobs / "12" / "slice").exists()
    assert (jobs / "12" / "refused").exists() is not whole
    assert [path.name for path in jobs.iterdir()] == ["12"]
    if not whole:
        assert "No space left on device" in (jobs / "12" / "refused").read_text()


def test_an_earlier_runs_slice_does_not_outlive_a_refusal(jobs: Path, file: Path) -> None:
    good, bad = FakeNvml(gpu(0)), FakeNvml()
    for nvml in (good, bad):
        prolog(JOB, jobs=jobs, file=file, ask=answer(SHARD), connect=nvml.connect)
    assert not (jobs / "12" / "slice").exists()


def test_whole_gpus_work_where_no_slice_can_be_created(jobs: Path, file: Path) -> None:
    ask = answer(Gres("gpu", "", 1))
    prolog(JOB, jobs=jobs, file=file, ask=ask, connect=FakeNvml().connect)
    assert [path.name for path in (jobs / "12").iterdir()] == ["driver"]


@pytest.mark.parametrize(("silences", "name"), [(2, "slice"), (3, "refused")])
def test_a_short_silence_of_slurm_is_waited_for(
    jobs: Path, file: Path, monkeypatch: pytest.MonkeyPatch, silences: int, name: str
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0)
    left = [silences]

    def ask(job: int, node: str) -> NodeJob:
        left[0] -= 1
        if left[0] >= 0:
            raise SlurmError("Unable to contact slurm controller")
        return NodeJob(os.getuid(), os.getgid(), False, (SHARD,))

    prolog(JOB, jobs=jobs, file=file, ask=ask, connect=FakeNvml(gpu(0)).connect)
    assert (jobs / "12" / name).exists()


def _run_script(name: str, folder: Path, **environment: str) -> int:
    path = {"PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run([str(PLUGINS / name)], env=path | environment, check=False)
    return done.returncode


def test_prologs_script_calls_root_only_for_gpus_and_never_fails(tmp_path: Path) -> None:
    command = tmp_path / "slipway-gpu"
    command.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/called\nexit 1\n')
    command.chmod(0o755)
    assert _run_script("prolog.sh", tmp_path, SLURM_JOB_ID="12") == 0
    assert _run_script("epilog.sh", tmp_path, SLURM_JOB_ID="12") == 0
    assert not (tmp_path / "called").exists()
    assert _run_script("prolog.sh", tmp_path, SLURM_JOB_ID="12", SLURM_JOB_GPUS="0") == 0
    assert (tmp_path / "called").read_text() == "prolog\n"
    command.unlink()
    assert _run_script("prolog.sh", tmp_path, SLURM_JOB_ID="12", SLURM_JOB_GPUS="0") == 0


def test_roots_command_is_one_file_without_dependencies(tmp_path: Path) -> None:
    build = PLUGINS.parent / "gres" / "build.sh"
    one, two = tmp_path / "one", tmp_path / "two"
    for out in (one, two):
        subprocess.run([str(build), str(out)], check=True)
    assert one.read_bytes() == two.read_bytes()
    # Without this machine's packages and without the checkout.
    run = [sys.executable, "-I", "-S", str(one), "epilog"]
    done = subprocess.run(run, env={}, cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "slipway-gpu: 'SLURM_JOB_ID' is not set\n")


def test_a_refusal_names_odd_bytes_escaped(jobs: Path, file: Path) -> None:
    def ask(job: int, node: str) -> NodeJob:
        raise RecursionError("x\udcff\n\x1b[2J")

    prolog(JOB, jobs=jobs, file=file, ask=ask, connect=FakeNvml(gpu(0)).connect)
    assert (jobs / "12" / "refused").read_bytes() == b"x\\udcff\\n\\x1b[2J\n"

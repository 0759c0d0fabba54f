"""Tier A: the driver is given a job's limits, by a fake nvidia-smi."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.node.common.gres import Gres
from portal.node.gpu import slices
from portal.node.gpu.limits import LimitsError, apply, supported
from portal.node.gpu.prolog import prolog
from tests.unit.node.gpu.node import DEMO, FakeNvml, answer, gpu, settings_file


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records its arguments; fails while a file says so."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "nvidia-smi"
    script.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/called\n'
        f'[ ! -e {tmp_path}/broken ] || {{ echo "Not Supported"; exit 3; }}\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path / "called"


@pytest.fixture
def cgroups(tmp_path: Path) -> Path:
    found = tmp_path / "cgroup"
    (found / "system.slice" / "slurmstepd.scope" / "job_12").mkdir(parents=True)
    (found / "cgroup.controllers").touch()
    return found


def test_supported_drivers(smi: Path, cgroups: Path, tmp_path: Path) -> None:
    assert supported((615, 1), "GPU-0", cgroups)
    assert smi.read_text() == f"memory-limits --get -n {cgroups} -i GPU-0\n"
    assert not supported((610, 99), "GPU-0", cgroups)
    assert not supported((615, 1), "GPU-0", tmp_path)  # cgroup v1
    (tmp_path / "broken").touch()
    assert not supported((615, 1), "GPU-0", cgroups)


def test_the_jobs_cgroup_gets_its_limit_without_a_reservation(
    smi: Path, cgroups: Path, tmp_path: Path
) -> None:
    jobs = tmp_path / "jobs"
    slices.write(jobs, 12, (os.getuid(), os.getgid()), {"limits": "GPU-0 2048\nGPU-1 4096\n"})
    apply(12, jobs, cgroups)
    job = cgroups / "system.slice" / "slurmstepd.scope" / "job_12"
    assert smi.read_text().splitlines() == [
        f"memory-limits --set -n {job} --soft-limit 0 --hard-limit 2048 -i GPU-0",
        f"memory-limits --set -n {job} --soft-limit 0 --hard-limit 4096 -i GPU-1",
    ]


def test_a_refused_limit_is_an_error(smi: Path, cgroups: Path, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    for job in (12, 13):
        slices.write(jobs, job, (os.getuid(), os.getgid()), {"limits": "GPU-0 2048\n"})
    with pytest.raises(LimitsError, match="no cgroup"):
        apply(13, jobs, cgroups)
    (tmp_path / "broken").touch()
    with pytest.raises(LimitsError, match="Not Supported"):
        apply(12, jobs, cgroups)


def test_older_drivers_have_nothing_to_apply(smi: Path, cgroups: Path, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    slices.write(jobs, 12, (os.getuid(), os.getgid()), {"slice": "version=1\n"})
    apply(12, jobs, cgroups)
    assert not smi.exists()


def test_prolog_records_the_limits_for_a_new_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.node.gpu.limits.supported", lambda driver, gpu: driver >= (615,))
    nvml = FakeNvml(gpu(0))
    environment = {"SLURM_JOB_ID": "12", "SLURMD_NODENAME": "n1", "SLURM_JOB_GPUS": "0"}
    for version, there in (((580, 1), False), ((615, 1), True)):
        nvml.version = version
        prolog(
            environment,
            jobs=tmp_path,
            file=settings_file(tmp_path, DEMO),
            ask=answer(Gres("shard", "", 1, ((1, 4),))),
            connect=nvml.connect,
        )
        assert (tmp_path / "12" / "limits").exists() is there
    assert (tmp_path / "12" / "limits").read_text() == f"GPU-0 {2048 + 64}\n"

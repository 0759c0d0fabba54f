"""Builds as jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from portal.adapters.images.cluster import SlurmRunner
from portal.core.images.names import ImageError


def test_the_command_runs_in_a_job_with_its_output_and_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "srun"
    program.write_text('#!/bin/sh\necho "$*"\nexit 5\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    shown: list[str] = []
    run = SlurmRunner(shown.append)
    assert run("build-r/4.5", ["--mem=8G"], ["images", "build", "r/4.5"]) == 5
    srun = "--job-name=build-r/4.5 --ntasks=1 --unbuffered --disable-status --mem=8G"
    assert shown == [
        f"Waiting for Slurm: srun {srun}",
        f"{srun} {sys.executable} -m portal.cli images build r/4.5",
    ]


def test_without_srun_it_is_said_where_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="run the command on a login node"):
        SlurmRunner(print)("x", [], [])

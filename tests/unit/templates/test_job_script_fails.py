"""The batch script's errors if a session cannot start, run by a real bash."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from portal.core.session.end_reasons import SCRIPT_FAILED, start_failure
from portal.core.session_job.batch_script import render_script
from tests.support.batch_scripts import ONE_HOUR_JOB, TEMPLATE_FILE


class Node:
    """A user's home and a node's programs, in a directory of the test."""

    def __init__(self, root: Path) -> None:
        self.home, self.bin = root / "home", root / "bin"
        self.folder = self.home / ".slipway" / "sessions" / ONE_HOUR_JOB.session
        self.image, self.toolkit = root / "image.sif", root / "toolkit.sqsh"
        self.disk = root / "disk"
        self.folder.mkdir(parents=True)
        self.bin.mkdir()
        self.disk.mkdir()
        (self.folder / "spec.json").write_text("{}")
        self.image.touch()
        self.toolkit.touch()
        self.apptainer("exit 0")

    def apptainer(self, script: str) -> None:
        """Install a fake Apptainer."""
        (self.bin / "apptainer").write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / "apptainer").chmod(0o755)

    def run(self, gres: str = "") -> tuple[int, str]:
        """The script's exit code and log."""
        job = dataclasses.replace(
            ONE_HOUR_JOB, image=str(self.image), toolkit=str(self.toolkit), gres=gres
        )
        script = render_script(job, TEMPLATE_FILE.read_text())
        script = script.replace("/run/slipway/", f"{self.home.parent}/slipway/")
        script = script.replace("export PATH=", f"export PATH={self.bin}:").replace(
            ". /etc/profile", "true"
        )
        done = subprocess.run(
            ["bash"],
            input=script,
            cwd=self.home,
            env={
                "SLURMD_NODENAME": "n1",
                "SLURM_JOB_ID": "7",
                "PATH": "/usr/bin:/bin",
                "TMPDIR": str(self.disk),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert not self.folder.exists(), "the session's folder is left behind"
        assert list(self.disk.iterdir()) == [], "temporary files are left behind"
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_started_session_logs_nothing(node: Node) -> None:
    assert node.run() == (0, "")


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("spec", "The session did not start: its instructions are gone. Launch it again."),
        ("home", "The session did not start: its folder could not be created; your home directory"),
        ("apptainer", "The session did not start: Apptainer was not found on n1."),
        ("toolkit", "The session did not start: Slipway's own programs cannot be read on n1 ("),
        ("image", "The session did not start: its image cannot be read on n1 ("),
    ],
)
def test_missing_requirements_are_the_logs_last_line(node: Node, missing: str, words: str) -> None:
    if missing == "home":
        (node.folder / "home").write_text("in the way")
    else:
        places = {"spec": node.folder / "spec.json", "apptainer": node.bin / "apptainer"}
        places |= {"toolkit": node.toolkit, "image": node.image}
        places[missing].unlink()
    code, log = node.run()
    assert code == SCRIPT_FAILED
    assert start_failure(code, log).startswith(words)


def test_a_gpu_requires_the_share_written_by_root(node: Node) -> None:
    code, log = node.run("shard:1")
    assert code == SCRIPT_FAILED
    assert start_failure(code, log) == (
        "The session did not start: this node gave the session no share of its GPU. "
        "Tell the administrators."
    )
    share = node.home.parent / "slipway" / "gpu" / "jobs" / "7"
    share.mkdir(parents=True)
    (share / "slice").touch()
    node.folder.mkdir()
    (node.folder / "spec.json").touch()
    node.apptainer('echo "$*"')
    code, log = node.run("shard:1")
    assert code == 0
    assert f"--nv --bind {share}:/opt/slipway-gpu " in log
    assert "mps" not in log


def test_apptainers_own_errors_and_code_pass_through(node: Node) -> None:
    node.apptainer("echo 'FATAL:   while mounting: no fuse' >&2; exit 255")
    code, log = node.run()
    assert code == 255
    assert "Apptainer could not open its environment (no fuse)" in start_failure(code, log)

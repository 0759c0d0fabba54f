"""Apptainer's options for a job's GPUs, in batch jobs and in a session's script."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from portal.node.batch.execute import container
from portal.node.batch.request import Request
from tests.support.paths import ROOT

SLICE = "version=1\ncompute={}\ngpu=GPU-6ab0dd8a\nmemory=1\nsm=25\n"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Root's folder on a node that has an MPS daemon, with the slice of job 7."""
    (tmp_path / "jobs" / "7").mkdir(parents=True)
    (tmp_path / "mps").mkdir()
    return tmp_path


@pytest.mark.parametrize(("compute", "mps"), [("mps", True), ("limiter", False), ("none", False)])
def test_only_kinds_with_mps_see_its_pipes(
    compute: str, mps: bool, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node / "jobs" / "7" / "slice").write_text(SLICE.format(compute))
    monkeypatch.setattr(container, "GPU_JOBS", str(node / "jobs"))
    found = container.gpu_options({"SLURM_JOB_ID": "7"})
    assert found[:3] == ["--nv", "--bind", f"{node}/jobs/7:/opt/slipway-gpu"]
    assert found[3:] == (["--bind", f"{node}/mps:/opt/slipway-gpu-mps"] if mps else [])


@pytest.mark.parametrize(("compute", "mps"), [("mps", True), ("limiter", False)])
def test_so_do_sessions(compute: str, mps: bool, node: Path) -> None:
    """The lines of the session's script, as it is."""
    (node / "jobs" / "7" / "slice").write_text(SLICE.format(compute))
    script = (ROOT / "tests" / "golden" / "session-gpu.sh").read_text().splitlines()
    first = next(at for at, line in enumerate(script) if line.startswith("share_gpu="))
    end = next(at for at, line in enumerate(script) if at > first and not line)
    lines = ["set -e", f"gpu={node}/jobs/7", *script[first:end], 'printf "%s\\n" "${share_gpu[@]}"']
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert (f"{node}/mps:/opt/slipway-gpu-mps" in done.stdout.split()) == mps
    assert f"{node}/jobs/7:/opt/slipway-gpu" in done.stdout.split()


def test_a_step_without_a_gpu_gets_nothing_of_its_jobs(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node / "jobs" / "7" / "slice").write_text(SLICE.format("limiter"))
    monkeypatch.setattr(container, "GPU_JOBS", str(node / "jobs"))
    monkeypatch.setattr(container, "NVIDIA", f"{node}/nvidia[0-9]*")
    for number in range(2):
        (node / f"nvidia{number}").touch()
    (node / "nvidiactl").touch()
    permitted: list[str] = []
    monkeypatch.setattr(os, "access", lambda path, mode: (
        os.path.basename(path) in ("slice", *permitted) and mode in (os.R_OK, os.R_OK | os.W_OK)
    ))  # fmt: skip
    assert container.gpu_options({"SLURM_JOB_ID": "7"}) == []
    permitted = ["nvidia1"]
    assert container.gpu_options({"SLURM_JOB_ID": "7"})[0] == "--nv"


def test_a_node_without_mps_has_no_pipes(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (node / "mps").rmdir()
    (node / "jobs" / "7" / "slice").write_text(SLICE.format("mps"))
    monkeypatch.setattr(container, "GPU_JOBS", str(node / "jobs"))
    assert len(container.gpu_options({"SLURM_JOB_ID": "7"})) == 3


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    """A request with an own folder and one of nobody's."""
    for name in ("own", "theirs"):
        (tmp_path / name).mkdir()
    os.chown(tmp_path / "theirs", pwd.getpwnam("nobody").pw_uid, -1)
    request = Request()
    request.toolkit = request.image = "/dev/null"
    request.binds = [[f"{tmp_path}/own", "rw"], [f"{tmp_path}/theirs", "ro", "nobody"]]
    return request


def test_the_launcher_compares_others_folders_with_what_was_seen(
    asked: Request, tmp_path: Path
) -> None:
    words = container.argv(asked, ["true"], environment={})
    status = (tmp_path / "theirs").stat()
    place = words.index(container.LAUNCHER)
    seen = f"{status.st_dev}:{status.st_ino} {tmp_path}/theirs"
    assert words[place + 1 :] == ["--seen", seen, "--", "true"]


@pytest.mark.parametrize("what", ["a link", "an own folder"])
def test_what_its_owner_put_in_its_place_is_not_mounted(
    what: str, asked: Request, tmp_path: Path
) -> None:
    (tmp_path / "theirs").rmdir()
    if what == "a link":
        (tmp_path / "theirs").symlink_to("own")
    else:
        (tmp_path / "theirs").mkdir()
    words = "the folder nobody/theirs is no longer shared with you"
    with pytest.raises(container.ContainerError, match=words):
        container.argv(asked, ["true"], environment={})


def test_a_folder_for_temporary_files_is_mounted(
    asked: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'a,"b'
    folder.mkdir()
    environment = {"TMPDIR": str(folder), "TEMP": "/tmp/x", "TMP": "/nowhere", "HOME": "/home/a"}
    monkeypatch.setattr(container, "VISIBLE", ("/tmp/x",))
    words = container.argv(asked_without_owner(asked), ["true"], environment=environment)
    quoted = str(folder).replace('"', '""')
    assert f'type=bind,"src={quoted}","dst={quoted}"' in words
    assert words[words.index(container.LAUNCHER) :].count("--temporary") == 1
    assert words[words.index("--temporary") + 1] == "TMPDIR"


def asked_without_owner(request: Request) -> Request:
    request.binds = []
    return request


@pytest.mark.parametrize("folder", ["/", "/usr", "/etc/", "/var", "/opt", "/home"])
def test_a_folder_of_the_system_does_not_hide_the_images(folder: str, asked: Request) -> None:
    words = container.argv(
        asked_without_owner(asked), ["true"], environment={"TMPDIR": folder, "HOME": "/home/a"}
    )
    assert not any("type=bind" in word for word in words)


def test_a_profile_sets_no_variable_of_apptainers(tmp_path: Path) -> None:
    (tmp_path / "profile").write_text("export APPTAINER_BIND=/x SINGULARITY_B=1 KEPT=1\n")
    words = container.apptainer_command("env-nowhere", {"PATH": ""})
    line = words[2].replace(container.PROFILE, f"{tmp_path}/profile")
    done = subprocess.run(
        [*words[:2], line, "env"], capture_output=True, text=True, check=True, env={"PATH": "/bin"}
    )
    assert "KEPT=1" in done.stdout
    assert "APPTAINER" not in done.stdout
    assert "SINGULARITY" not in done.stdout


def test_a_folder_below_tmp_may_be_a_link_to_where_the_image_has_nothing(
    asked: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "VISIBLE", (str(tmp_path),))
    (tmp_path / "link").symlink_to(tmp_path)
    for folder, times in ((tmp_path / "link", 1), (tmp_path, 0)):
        words = container.argv(
            asked_without_owner(asked), ["true"], environment={"TMPDIR": str(folder)}
        )
        assert words[words.index(container.LAUNCHER) :].count("--temporary") == times
        assert not any("type=bind" in word for word in words)

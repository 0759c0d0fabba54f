"""What apps/jupyterlab/start.sh writes into a home, and which files the file browser shows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT

START = ROOT / "apps" / "jupyterlab" / "start.sh"
CONFIG = ROOT / "images" / "toolkit" / "jupyter" / "config" / "jupyter_server_config.py"


def start(root: Path, **more: str) -> list[str]:
    """JupyterLab's options."""
    for name in ("home", "run", "bin"):
        (root / name).mkdir()
    lab = root / "bin" / "jupyter-lab"
    lab.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    lab.chmod(0o755)
    environment = {
        "PATH": f"{root}/bin:{os.environ['PATH']}",
        "HOME": f"{root}/home",
        "SLIPWAY_RUN": f"{root}/run",
        "SLIPWAY_TOOLKIT": "/opt/slipway",
        "SLIPWAY_NAME": "harbour7",
        "SLIPWAY_SOCKET": f"{root}/run/sock",
    }
    done = subprocess.run(
        ["sh", str(START)],
        env=environment | more,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_nothing_is_written_into_the_users_own_home(tmp_path: Path) -> None:
    start(tmp_path, SLIPWAY_HOME="persistent")
    assert list((tmp_path / "home").iterdir()) == []


def test_a_new_home_gets_the_kernels_settings(tmp_path: Path) -> None:
    start(tmp_path)
    profile = tmp_path / "home" / ".ipython" / "profile_default" / "ipython_kernel_config.py"
    assert '"guard"' in profile.read_text()


@pytest.mark.parametrize(("files", "root"), [("", "{home}"), ("/", "/")])
def test_the_file_browser_shows_the_home_or_also_storage_elsewhere(
    tmp_path: Path, files: str, root: str
) -> None:
    options = start(tmp_path, SLIPWAY_HOME="persistent", SLIPWAY_FILES=files)
    assert f"--ServerApp.root_dir={root.format(home=tmp_path / 'home')}" in options
    # The start directory is relative to the same root.
    assert 'ROOT = os.environ.get("SLIPWAY_FILES") or HOME' in CONFIG.read_text()

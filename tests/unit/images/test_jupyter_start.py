"""What apps/jupyterlab/start.sh writes into a home, and which files the file browser shows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT

START = ROOT / "apps" / "jupyterlab" / "start.sh"
CONFIG = ROOT / "images" / "toolkit" / "jupyter" / "config" / "jupyter_server_config.py"


def start(root: Path, does: str = 'printf "%s\\n" "$@"', **more: str) -> list[str]:
    """What a stand-in for JupyterLab prints: its options."""
    for name in ("home", "run", "bin"):
        (root / name).mkdir()
    lab = root / "bin" / "jupyter-lab"
    lab.write_text(f"#!/bin/sh\n{does}\n")
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


def test_nor_into_a_new_home_where_every_program_would_find_it(tmp_path: Path) -> None:
    """The kernels' guard is mounted by the batch script, with its counterpart in all apps."""
    start(tmp_path)
    assert list((tmp_path / "home").iterdir()) == []


def test_the_server_sees_nothing_of_what_users_install(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.mkdir()
    (users / "jupyter-lab").write_text("#!/bin/sh\necho of the user\n")
    (users / "jupyter-lab").chmod(0o755)
    tell = 'printf "%s\\n" "$PATH" "$SLIPWAY_USERS_PATH" "$PYTHONNOUSERSITE"'
    plain = f"{tmp_path}/bin:{os.environ['PATH']}"
    found = start(tmp_path, tell, PATH=f"{users}:{plain}", SLIPWAY_PATH=plain)
    assert found == [plain, f"{users}:{plain}", "1"]


def test_settings_with_which_nobody_gets_in_are_fixed(tmp_path: Path) -> None:
    """A base URL, a password or a certificate of the user's made a ready app unusable."""
    options = start(tmp_path)
    fixed = ["base_url=/", "certfile=", "keyfile=", "ssl_options={}", "password=", "port=8888"]
    assert {f"--ServerApp.{option}" for option in fixed} <= set(options)
    assert "--PasswordIdentityProvider.hashed_password=" in options


@pytest.mark.parametrize("app", ["jupyterlab", "jupyterhub"])
def test_no_dictionary_of_the_users_is_replaced(app: str) -> None:
    text = (ROOT / "apps" / app / "start.sh").read_text()
    assert "_settings=" not in text
    assert "jpserver_extensions=" not in text


@pytest.mark.parametrize(("files", "root"), [("", "{home}"), ("/", "/")])
def test_the_file_browser_shows_the_home_or_also_storage_elsewhere(
    tmp_path: Path, files: str, root: str
) -> None:
    options = start(tmp_path, SLIPWAY_HOME="persistent", SLIPWAY_FILES=files)
    assert f"--ServerApp.root_dir={root.format(home=tmp_path / 'home')}" in options
    # The start directory is relative to the same root.
    assert 'ROOT = os.environ.get("SLIPWAY_FILES") or HOME' in CONFIG.read_text()

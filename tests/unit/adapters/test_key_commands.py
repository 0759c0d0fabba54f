"""The command that makes and hands out a user's SSH key, run by a real shell in a made-up home."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from portal.adapters.key_commands import key_argv, make_step
from portal.core.ssh import find_private_key


def start(home: Path, new: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        key_argv(".slipway", new),
        env=os.environ | {"HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(home: Path, new: bool = False) -> str:
    process = start(home, new)
    key, _ = process.communicate()
    assert process.returncode == 0
    return key


def test_of_many_at_once_all_get_the_same_key(tmp_path: Path) -> None:
    keys = {process.communicate()[0] for process in [start(tmp_path) for _ in range(6)]}
    assert len(keys) == 1
    key = keys.pop()
    assert find_private_key(key) == key
    file = tmp_path / ".slipway" / "id_container"
    assert file.read_text() == key
    assert file.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in (tmp_path / ".slipway").iterdir()] == ["id_container"]


@pytest.mark.parametrize("new", [False, True])
def test_every_session_has_the_key_afterwards(tmp_path: Path, new: bool) -> None:
    homes = [tmp_path / ".slipway" / "sessions" / name / "home" for name in ("a", "b")]
    for home in homes:
        home.mkdir(parents=True)
    (tmp_path / ".slipway" / "sessions" / "begun").mkdir()
    (homes[0] / "id_container").write_text("an older one")
    first = ask(tmp_path)
    key = ask(tmp_path, new)
    assert (key == first) is not new
    for home in homes:
        assert (home / "id_container").read_text() == key
        assert [found.name for found in home.iterdir()] == ["id_container"]


def test_a_launch_makes_the_key_once(tmp_path: Path) -> None:
    (tmp_path / ".slipway").mkdir()
    for _ in range(2):
        subprocess.run(["sh", "-c", make_step(".slipway")], cwd=tmp_path, check=True)
    assert ask(tmp_path) == ask(tmp_path)


def test_a_home_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / ".slipway").write_text("a file in the way")
    process = start(tmp_path)
    assert process.communicate()[0] == ""
    assert process.returncode == 1

"""Files of the user's home that are copied into a session's home, by a real bash."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path

import pytest

from portal.core.session_job.batch_script import render_script
from tests.support.batch_scripts import PLAIN, TEMPLATE

NAMES = (".tmux.conf", ".config/tmux/tmux.conf", ".vimrc", ".inputrc", ".nanorc", ".gitconfig")
JOB = dataclasses.replace(PLAIN, dotfiles=NAMES)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's home, with the folder of a session that is about to start."""
    (tmp_path / "session" / "home").mkdir(parents=True)
    return tmp_path


def copy(home: Path) -> Path:
    """Run that part of the script, and return the session's home."""
    part = render_script(JOB, TEMPLATE).partition("# The session's home is new")[2]
    part = part.partition("# If Apptainer")[0]
    done = subprocess.run(
        ["bash", "-c", f"#{part}"],
        cwd=home,
        env={**os.environ, "session": f"{home}/session"},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert done.stderr == ""
    return home / "session" / "home"


def test_they_are_copied_with_their_folders(home: Path) -> None:
    (home / ".tmux.conf").write_text("set -g prefix C-a\n")
    (home / ".config" / "tmux").mkdir(parents=True)
    (home / ".config" / "tmux" / "tmux.conf").write_text("set -g status off\n")
    (home / ".bash_history").write_text("not asked for\n")
    found = copy(home)
    assert (found / ".tmux.conf").read_text() == "set -g prefix C-a\n"
    assert (found / ".tmux.conf").stat().st_mode & 0o777 == 0o600
    assert (found / ".config" / "tmux" / "tmux.conf").read_text() == "set -g status off\n"
    assert not (found / ".bash_history").exists()


def test_linked_files_are_copied_as_files(home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "vimrc").write_text("set nu\n")
    (home / ".vimrc").symlink_to("dotfiles/vimrc")
    found = copy(home) / ".vimrc"
    assert found.read_text() == "set nu\n"
    assert not found.is_symlink()


def test_only_files_of_a_reasonable_size_are_copied(home: Path) -> None:
    (home / ".vimrc").mkdir()
    os.mkfifo(home / ".inputrc")
    (home / ".nanorc").symlink_to("nowhere")
    (home / ".gitconfig").symlink_to("/dev/zero")
    (home / ".tmux.conf").write_bytes(b"x" * 262145)
    assert list(copy(home).iterdir()) == []

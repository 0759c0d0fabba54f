"""The login shell's umask, asked by a shell that is none."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from portal.adapters.ssh.shell import umask as module
from portal.adapters.ssh.shell.umask import ask_step, take_step
from tests.support.login_shells import path_of


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 60)


def umask(home: Path, shell: str) -> str:
    script = f"cd; umask=$(umask); umask 077\n{ask_step('login')}\n{take_step('login')}\numask"
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "SHELL": shell}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environment, capture_output=True, umask=0o022, check=True
    )
    assert done.stderr == b""
    assert not (home / "login").exists()
    return done.stdout.decode().strip()


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".bash_profile"),
        ("bsd-csh", ".login"),
        ("dash", ".profile"),
        ("fish", ".config/fish/config.fish"),
        ("ksh93", ".profile"),
        ("mksh", ".profile"),
        ("rc", ".rcrc"),
        ("tcsh", ".login"),
        ("yash", ".yash_profile"),
        ("zsh", ".zprofile"),
    ],
)
def test_login_files_count(tmp_path: Path, shell: str, file: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("echo Welcome, Umask: 7\numask 007\n")
    assert umask(tmp_path, path_of(shell)) == "0007"


@pytest.mark.parametrize("shell", ["sash", "elvish", "/none", ""])
def test_without_an_answer_it_stays_as_it_was(tmp_path: Path, shell: str) -> None:
    path = shell if shell in ("/none", "") else path_of(shell)
    assert umask(tmp_path, path) == "0022"


def test_what_start_up_files_leave_behind_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / ".profile").write_text("umask 027; sleep 90 &\n")
    begun = time.monotonic()
    assert umask(tmp_path, "/bin/sh") == "0027"
    assert time.monotonic() - begun < 80


def test_start_up_files_that_do_not_end_cost_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 1)
    (tmp_path / ".profile").write_text("umask 027; sleep 90\n")
    begun = time.monotonic()
    assert umask(tmp_path, "/bin/sh") == "0022"
    assert time.monotonic() - begun < 80

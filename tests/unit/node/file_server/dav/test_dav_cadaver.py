"""cadaver, the WebDAV program of most Linux distributions, through HAProxy."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

NAMES = ["plain.txt", "with space.txt", "Größen 2026 (2).txt", "100% & <more>.txt"]
Cadaver = Callable[..., str]


@pytest.fixture
def cadaver(proxy: str, tmp_path: Path) -> Cadaver:
    """Runs commands of cadaver in a local folder; returns what it says."""
    work = tmp_path / "work"
    work.mkdir()

    def run(*commands: str) -> str:
        done = subprocess.run(
            ["cadaver", f"{proxy}/data/dav/home/"],
            input="\n".join([*commands, "quit"]),
            env={**os.environ, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=work,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("name", NAMES)
def test_files_go_up_and_down_and_are_copied_moved_and_deleted(
    cadaver: Cadaver, home: Path, tmp_path: Path, name: str
) -> None:
    source = tmp_path / "work" / name
    source.write_bytes(os.urandom(100_000))
    output = cadaver(
        f'put "{name}"',
        "mkcol folder",
        f'copy "{name}" "folder/{name}"',
        f'move "{name}" "moved {name}"',
        f'get "folder/{name}" down',
        "ls",
        f'delete "moved {name}"',
    )
    assert "failed" not in output.lower(), output
    assert "moved" in output
    assert (home / "folder" / name).read_bytes() == source.read_bytes()
    assert (tmp_path / "work" / "down").read_bytes() == source.read_bytes()
    assert sorted(each.name for each in home.iterdir()) == ["folder", "storage"]
    assert "failed" not in cadaver("rmcol folder").lower()
    assert not (home / "folder").exists()


def test_a_tree_is_copied_over_another_one(cadaver: Cadaver, home: Path) -> None:
    for name, text in (("new", "new"), ("old", "old")):
        (home / name / "deep").mkdir(parents=True)
        (home / name / "deep/file").write_text(text)
    (home / "old/only").write_text("old")
    assert "failed" not in cadaver("copy new old/", "copy new/deep other").lower()
    assert (home / "old/new/deep/file").read_text() == "new"
    assert (home / "other/file").read_text() == "new"


def test_a_locked_file_is_written_by_who_holds_the_lock(
    cadaver: Cadaver, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "work/file").write_text("mine")
    (home / "file").write_text("old")
    output = cadaver("lock file", "showlocks", "discover file", "put file", "unlock file")
    assert "failed" not in output.lower(), output
    assert "opaquelocktoken:" in output
    assert (home / "file").read_text() == "mine"
    cadaver("lock file")  # and ends without unlocking it
    output = cadaver("put file")
    assert "423" in output, output


def test_properties(cadaver: Cadaver, home: Path) -> None:
    (home / "file").write_text("1")
    output = cadaver(
        "set namespace urn:x", "propset file author Ada", "propget file author", "propnames file"
    )
    assert "Value of author is: Ada" in output, output
    assert b"Ada" in os.getxattr(home / "file", "user.dav.properties")
    cadaver("set namespace DAV:", "propset file lastmodified 1500000000")
    assert (home / "file").stat().st_mtime == 1_500_000_000

"""WebDAV with rclone and curl, through HAProxy."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

ODD = [
    "a b",
    "100%",
    "ä日本",
    "-dash",
    "'quote\"",
    "<b>&amp;",
    "x" * 200,
    "semi;colon",
    "#1",
    "q?",
]


def run(*words: str) -> str:
    """The output of a command."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def rclone(proxy: str, tmp_path: Path) -> list[str]:
    """rclone, with the server as "portal:"."""
    config = tmp_path / "rclone.conf"
    config.write_text(f"[portal]\ntype = webdav\nurl = {proxy}/data/dav\nvendor = owncloud\n")
    return ["rclone", "--config", str(config), "--retries", "1"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """100 files with odd names."""
    folder = tmp_path / "tree"
    for number in range(100):
        path = folder / ODD[number % 7] / f"{ODD[number % 10]} {number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.Random(number).randbytes(number * 997))
        os.utime(path, (1_500_000_000 + number,) * 2)
    return folder


def test_a_tree_goes_up_and_down(rclone: list[str], tree: Path, home: Path, tmp_path: Path) -> None:
    target = "portal:home/up"
    run(*rclone, "copy", str(tree), target)
    run("diff", "-r", str(tree), str(home / "up"))
    one = next(path for path in tree.rglob("* 42"))
    assert (home / "up" / one.relative_to(tree)).stat().st_mtime == 1_500_000_042
    run(*rclone, "check", "--download", str(tree), target)
    one.write_text("changed")
    assert "Copied" in run_verbose(*rclone, "-v", "copy", str(tree), target)
    run(*rclone, "copy", target, str(tmp_path / "down"))
    run("diff", "-r", str(tree), str(tmp_path / "down"))
    run(*rclone, "moveto", target, "portal:storage/moved")
    run(*rclone, "check", "--download", str(tree), "portal:storage/moved")
    run(*rclone, "copyto", f"portal:storage/moved/{one.relative_to(tree)}", "portal:home/copy")
    assert (home / "copy").read_text() == "changed"
    run(*rclone, "purge", "portal:storage/moved")
    assert [path.name for path in (home / "storage").iterdir()] == ["data"]


def run_verbose(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Copied") == 1
    return done.stderr


def test_curl_sends_receives_and_goes_on(proxy: str, home: Path, tmp_path: Path) -> None:
    source, got = tmp_path / "source", tmp_path / "got"
    source.write_bytes(os.urandom(3_000_000))
    run("curl", "-sfT", str(source), f"{proxy}/data/dav/home/")
    assert (home / "source").read_bytes() == source.read_bytes()
    got.write_bytes(source.read_bytes()[:1_000_000])
    run("curl", "-sf", "-C", "-", "-o", str(got), f"{proxy}/data/dav/home/source")
    assert got.read_bytes() == source.read_bytes()
    found = run("curl", "-s", "-X", "PROPFIND", "-H", "Depth: 1", f"{proxy}/data/dav/home")
    assert "<D:href>/data/dav/home/source</D:href>" in found

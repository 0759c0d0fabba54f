"""curl as scripts use it, at both doors, through HAProxy."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.unit.node.file_server.dav.conftest import lock_info

NAMES = ["plain.txt", "with space.txt", "Größen 2026 (2).txt", "100% & #more?.txt"]
Curl = Callable[..., tuple[int, str]]


@pytest.fixture(params=["dav", "files"])
def door(request: pytest.FixtureRequest) -> str:
    """An address that takes files."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def curl(proxy: str) -> Curl:
    """Runs curl for a path below /data/; returns the status, and the headers with the body."""

    def run(path: str, *words: str) -> tuple[int, str]:
        command = ["curl", "-sS", "-i", "-w", "\n%{http_code}", *words, f"{proxy}/data/{path}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        output, _, status = done.stdout.rpartition("\n")
        return int(status), output

    return run


@pytest.mark.parametrize("name", NAMES)
def test_files_go_up_and_down_and_are_deleted(
    curl: Curl, home: Path, tmp_path: Path, door: str, name: str
) -> None:
    path = f"{door}/home/{quote(name)}"
    (tmp_path / "source").write_text("contents")
    assert curl(path, "-T", str(tmp_path / "source"))[0] == 201
    assert (home / name).read_text() == "contents"
    status, output = curl(path)
    assert (status, output.endswith("contents")) == (200, True)
    tag = re.search("ETag: (.*)", output, re.IGNORECASE)
    assert tag
    assert curl(path, "-H", f"If-None-Match: {tag[1].strip()}")[0] == 304
    assert curl(path, "-z", str(home / name))[0] == 304, "--time-cond"
    assert curl(path, "-X", "DELETE", "-H", 'If-Match: "other"')[0] == 412
    assert curl(path, "-X", "DELETE")[0] == 204
    assert curl(path)[0] == 404


def test_an_upload_that_is_resumed_does_not_destroy_the_file(
    curl: Curl, home: Path, tmp_path: Path, door: str
) -> None:
    (tmp_path / "source").write_bytes(os.urandom(3_000_000))
    (home / "file").write_bytes((tmp_path / "source").read_bytes()[:1_000_000])
    before = (home / "file").read_bytes()
    status, output = curl(f"{door}/home/file", "-C", "1000000", "-T", str(tmp_path / "source"))
    assert (status, "tus" in output) == (400, True)
    assert (home / "file").read_bytes() == before
    assert curl(f"{door}/home/file", "-T", str(tmp_path / "source"))[0] == 200


def test_a_download_is_resumed_and_known_when_it_is_complete(
    proxy: str, home: Path, tmp_path: Path, door: str
) -> None:
    (home / "file").write_bytes(os.urandom(3_000_000))
    down = tmp_path / "down"
    down.write_bytes((home / "file").read_bytes()[:1_000_000])
    # The second time nothing is missing, which curl knows by Content-Range of the 416.
    for _ in range(2):
        words = ["curl", "-sS", "-C", "-", "-o", str(down), f"{proxy}/data/{door}/home/file"]
        subprocess.run(words, check=True, timeout=60)
        assert down.read_bytes() == (home / "file").read_bytes()


def test_a_session_of_webdav(curl: Curl, proxy: str, home: Path, tmp_path: Path) -> None:
    to = f"Destination: {proxy}/data/dav/home/"
    assert curl("dav/home/a%20folder", "-X", "MKCOL")[0] == 201
    (home / "a folder/file").write_text("1")
    assert curl("dav/home/a%20folder", "-X", "COPY", "-H", to + "copy")[0] == 201
    assert curl("dav/home/copy", "-X", "MOVE", "-H", to + quote("grün"))[0] == 201
    assert curl("dav/home/a%20folder", "-X", "COPY", "-H", to + quote("grün"))[0] == 204
    status, output = curl("dav/home", "-X", "PROPFIND", "-H", "Depth: 1")
    assert (status, f"/data/dav/home/{quote('grün')}/" in output) == (207, True)
    path = f"dav/home/{quote('grün')}/file"
    info = lock_info().decode()
    status, output = curl(path, "-X", "LOCK", "-H", "Timeout: Second-600", "-d", info)
    token = re.search("Lock-Token: (.*)", output, re.IGNORECASE)
    assert token
    words = ["-T", str(home / "a folder/file")]
    assert curl(path, *words)[0] == 423
    assert curl(path, *words, "-H", f"If: ({token[1].strip()})")[0] == 200
    assert curl(path, "-X", "UNLOCK", "-H", f"Lock-Token: {token[1].strip()}")[0] == 204
    assert curl(f"dav/home/{quote('grün')}", "-X", "DELETE")[0] == 204
    assert not (home / "grün").exists()


def test_statuses_name_what_to_do(curl: Curl, home: Path) -> None:
    (home / "file").write_text("0123456789")
    status, output = curl("files/home/file", "-r", "20-")
    assert (status, "content-range: bytes */10" in output.lower()) == (416, True)
    for path, allowed in (
        ("files/home/file", "GET, HEAD, PUT, DELETE"),
        ("archive/home", "GET, HEAD, POST"),
    ):
        status, output = curl(path, "-X", "PATCH")
        assert (status, f"allow: {allowed.lower()}" in output.lower()) == (405, True)

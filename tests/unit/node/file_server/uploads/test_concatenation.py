"""Partial uploads and their joining: repeated requests, conflicts, limits, other file systems."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server import http
from portal.node.file_server.copy_data import copy_data
from portal.node.file_server.server import FileServer
from portal.node.file_server.uploads import concatenation
from tests.unit.node.file_server.conftest import Client, run_proxy
from tests.unit.node.file_server.uploads.conftest import TUS, Tus, metadata, parts, problem

BODY = os.urandom(300_000)


def halves(tus: Tus) -> list[str]:
    return [tus.partial(BODY[:100_001]), tus.partial(BODY[100_001:])]


def test_data_are_deleted_after_the_join_and_the_same_request_has_the_same_answer(
    tus: Tus, home: Path
) -> None:
    urls = halves(tus)
    first = tus.final(urls, "home/new/a", on_conflict="rename")
    assert first.status == 201
    assert parts(home) == []
    for url in urls:
        found = tus.head(url)
        assert (found.status, found.headers["Upload-Concat"]) == (200, "partial")
        assert found.headers["Upload-Offset"] == found.headers["Upload-Length"]
    again = tus.final(urls, "home/new/a", on_conflict="rename")
    assert (again.status, again.headers["Location"]) == (201, first.headers["Location"])
    assert [path.name for path in (home / "new").iterdir()] == ["a"]
    assert (home / "new/a").read_bytes() == BODY
    found = tus.final(urls, "home/new/b")
    assert (problem(found), found.json["field"]) == ((410, "gone"), "Upload-Concat")
    assert not (home / "new/b").exists()


def test_a_name_that_exists_leaves_the_partial_uploads(tus: Tus, home: Path) -> None:
    urls = halves(tus)
    (home / "a.txt").write_text("old")
    assert problem(tus.final(urls, "home/a.txt")) == (409, "exists")
    assert (home / "a.txt").read_text() == "old"
    found = tus.final(urls, "home/a.txt", on_conflict="rename", modified="1500000000")
    assert found.headers["Upload-Final-Path"] == "home/a%20(2).txt"
    assert (home / "a (2).txt").read_bytes() == BODY
    assert (home / "a (2).txt").stat().st_mtime == 1500000000
    urls = halves(tus)
    assert tus.final(urls, "home/a.txt", on_conflict="replace").status == 201
    assert (home / "a.txt").read_bytes() == BODY


def test_a_wrong_checksum_leaves_the_partial_uploads(tus: Tus, home: Path) -> None:
    urls = halves(tus)
    assert problem(tus.final(urls, "home/new/a", sha256="0" * 64)) == (460, "checksum")
    assert list((home / "new").iterdir()) == []
    digest = hashlib.sha256(BODY).hexdigest()
    assert tus.final(urls, "home/new/a", sha256=digest).status == 201


def test_partial_uploads_that_cannot_be_joined_are_named(tus: Tus, home: Path) -> None:
    complete, other = tus.partial(b"x"), tus.begin("home/b", 1)
    found = tus.post(Upload_Concat="partial", Upload_Length="2")
    incomplete = found.headers["Location"]
    tus.patch(incomplete, 0, b"x")
    for url, status, code in (
        (incomplete, 409, "unfinished"),
        (other, 400, "value"),
        ("/data/uploads/" + "0" * 32, 404, "no_upload"),
    ):
        found = tus.final([complete, url], "home/a")
        assert (problem(found), found.json["field"]) == ((status, code), "Upload-Concat")
    assert not (home / "a").exists()
    assert tus.patch(incomplete, 1, b"y").status == 204
    assert tus.final([complete, incomplete], "home/a").status == 201
    assert (home / "a").read_bytes() == b"xxy"


def test_parts_without_a_path_are_private(tus: Tus, home: Path) -> None:
    before = os.umask(0)
    try:
        tus.partial(b"x")
    finally:
        os.umask(before)
    (part,) = parts(home / ".slipway")
    folders = part.relative_to(home).parents
    assert [(home / folder).stat().st_mode & 0o777 for folder in list(folders)[:-1]] == [0o700] * 3


def test_parts_with_a_path_are_beside_it(tus: Tus, home: Path) -> None:
    tus.partial(b"x", Upload_Metadata=metadata(path="home/storage/data/a"))
    assert len(parts(home / "storage/data")) == 1
    found = tus.post(
        Upload_Concat="partial", Upload_Length="1", Upload_Metadata=metadata(path="none/a")
    )
    assert found.status == 404


def test_their_number_is_limited(tus: Tus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concatenation, "MOST_PARTIALS", 2)
    urls = halves(tus)
    found = tus.post(Upload_Concat="partial", Upload_Length="1")
    assert (problem(found), found.json["field"]) == ((409, "too_many"), "Upload-Concat")
    assert tus.final(urls, "home/a").status == 201
    tus.partial(b"x")


def test_they_expire(server: FileServer, home: Path, tus: Tus) -> None:
    old, young = halves(tus)
    os.utime(min(parts(home), key=lambda part: part.stat().st_size), (0, 0))
    assert server.files.uploads.clean() == 1
    assert (tus.head(old).status, tus.head(young).status) == (404, 200)
    assert problem(tus.final([old, young], "home/a")) == (404, "no_upload")


def test_they_are_listed(tus: Tus, control: Client) -> None:
    tus.partial(b"xx")
    tus.post(Upload_Defer_Length="1", Upload_Metadata=metadata(path="home/a"))
    found = control("GET", "/v1/uploads").json["uploads"]
    assert [(upload["is_partial"], upload["length"]) for upload in found] == [
        (False, None),
        (True, 2),
    ]


def test_too_little_space_leaves_the_partial_uploads(
    small_disk: Path, tus: Tus, home: Path
) -> None:
    url = tus.partial(b"x" * 3_000_000)
    assert problem(tus.final([url, url], "storage/data/a")) == (507, "full")
    assert list(small_disk.iterdir()) == []
    assert tus.final([url], "storage/data/a").status == 201
    assert (small_disk / "a").stat().st_size == 3_000_000
    values = metadata(path="storage/data/b")
    found = tus.post(Upload_Concat="partial", Upload_Length="3000000", Upload_Metadata=values)
    assert problem(found) == (507, "full")


def slowly(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the joining take this long for each part."""

    def copy_slowly(source: int, target: int, progress: Callable[[int], Any], start: int) -> int:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            progress(0)
            time.sleep(0.01)
        return copy_data(source, target, progress, start)

    monkeypatch.setattr(concatenation, "copy_data", copy_slowly)


def test_a_join_that_takes_long_keeps_the_connection(
    tus: Tus, server: FileServer, ca: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "WORKING_SECONDS", 0.3)
    slowly(monkeypatch, 1.5)
    urls = halves(tus)
    headers = {
        **TUS,
        "Upload-Concat": f"final;{' '.join(urls)}",
        "Upload-Metadata": metadata(path="home/new/a"),
    }
    with run_proxy(server, ca, tmp_path / "haproxy.cfg", 1) as url:
        line = HTTPConnection(url.removeprefix("http://"), timeout=20)
        line.request("POST", "/data/uploads/", headers=headers)
        assert line.getresponse().status == 201
        line.close()


def test_a_request_that_is_repeated_meanwhile_waits_for_its_turn(
    tus: Tus, client: Callable[[str], Client], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly(monkeypatch, 0.7)
    urls = halves(tus)
    headers = {
        **TUS,
        "Upload-Concat": f"final;{' '.join(urls)}",
        "Upload-Metadata": metadata(path="home/new/a"),
    }
    first = client("files").connection
    first.request("POST", "/data/uploads/", headers=headers)
    deadline = time.monotonic() + 10
    while not parts(home / "new"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    first.close()  # the laptop is shut; the joining goes on
    assert problem(tus.final(urls, "home/new/a")) == (423, "locked")
    assert tus.patch(urls[0], 100_001, b"x").status in (409, 413, 423)
    while (found := tus.final(urls, "home/new/a")).status == 423:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert found.status == 201
    assert (home / "new/a").read_bytes() == BODY


def test_data_with_the_creation_of_a_partial_upload(tus: Tus, home: Path) -> None:
    urls = []
    for text in (b"hello", b" world", b""):
        found = tus.post(text, Upload_Concat="partial", Upload_Length=str(len(text)))
        assert found.headers["Upload-Offset"] == str(len(text))
        urls.append(found.headers["Location"])
    assert tus.final(urls, "home/new/a").status == 201
    assert (home / "new/a").read_bytes() == b"hello world"

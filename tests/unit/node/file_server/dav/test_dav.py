"""WebDAV, request by request."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.unit.node.file_server.conftest import Answer, Client

PROP = "{DAV:}propstat/{DAV:}prop/{DAV:}"


def hrefs(found: Answer) -> list[str]:
    assert found.status == 207, found.body
    return sorted(each.text or "" for each in ET.fromstring(found.body).iter("{DAV:}href"))


def to(path: str, **headers: str) -> dict[str, str]:
    return {"Destination": f"/data/dav/{path}", **headers}


def test_what_the_server_can_do(data: Client) -> None:
    found = data("OPTIONS", "/data/dav/home")
    assert (found.status, found.headers["DAV"]) == (200, "1, 2")
    assert found.headers["Allow"] == "OPTIONS, PROPFIND"
    assert "LOCK" in data("OPTIONS", "/data/dav/home/file").headers["Allow"]


def test_the_roots_and_a_folder_are_listed(data: Client, home: Path) -> None:
    found = data("PROPFIND", "/data/dav/", headers={"Depth": "1"})
    assert hrefs(found) == ["/data/dav/", "/data/dav/home/", "/data/dav/storage/"]
    (home / "a&<b>\n.txt").write_bytes(b"12345")
    Path(home, "caf\udce9").mkdir()
    (home / ".slipway-0123").write_bytes(b"a part")
    os.mkfifo(home / "fifo")
    found = data("PROPFIND", "/data/dav/home", headers={"Depth": "1"})
    assert hrefs(found) == [
        "/data/dav/home/",
        "/data/dav/home/a%26%3Cb%3E%0A.txt",
        "/data/dav/home/caf%E9/",
        "/data/dav/home/storage/",
    ]


def test_properties_that_are_asked_for(data: Client, home: Path) -> None:
    (home / "a.txt").write_bytes(b"12345")
    os.utime(home / "a.txt", (0, 0))
    body = (
        b'<propfind xmlns="DAV:"><prop><getcontentlength/><getlastmodified/>'
        b'<x:checksums xmlns:x="http://example.org/&quot;"/></prop></propfind>'
    )
    found = data("PROPFIND", "/data/dav/home/a.txt", body, {"Depth": "0"})
    (response,) = ET.fromstring(found.body)
    assert response.findtext(PROP + "getcontentlength") == "5"
    assert response.findtext(PROP + "getlastmodified") == "Thu, 01 Jan 1970 00:00:00 GMT"
    missing = response.findall("{DAV:}propstat")[1]
    assert missing.findtext("{DAV:}status") == "HTTP/1.1 404 Not Found"
    assert missing[0][0].tag == '{http://example.org/"}checksums'


@pytest.mark.parametrize(
    ("depth", "body", "status"),
    [
        ("infinity", b"", 403),
        ("0", b"<propfind", 400),
        ("0", b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', 400),
        ("0", b"<x>" + b" " * 70_000 + b"</x>", 413),
    ],
)
def test_wrong_questions(data: Client, depth: str, body: bytes, status: int) -> None:
    assert data("PROPFIND", "/data/dav/home", body, {"Depth": depth}).status == status


def test_links_are_listed_as_what_they_lead_to_but_not_outside_or_in_circles(
    data: Client, home: Path, tmp_path: Path
) -> None:
    (home / "storage/data/real").write_text("12345")
    (home / "in").symlink_to("storage/data/real")
    (home / "folder").symlink_to("storage/data")
    (home / "storage/data/out").symlink_to(tmp_path)
    (home / "storage/data/circle").symlink_to("../..")
    found = data("PROPFIND", "/data/dav/home", headers={"Depth": "1"})
    names = ["", "folder/", "in", "storage/"]
    assert hrefs(found) == [f"/data/dav/home/{name}" for name in names]
    found = data("PROPFIND", "/data/dav/home/storage/data", headers={"Depth": "1"})
    assert hrefs(found) == [f"/data/dav/home/storage/data/{name}" for name in ("", "real")]


def test_files_are_written_and_read(data: Client, home: Path) -> None:
    found = data("PUT", "/data/dav/home/a.txt", b"hello", {"X-OC-Mtime": "1500000000"})
    assert (found.status, found.headers["X-OC-MTime"]) == (201, "accepted")
    assert (home / "a.txt").stat().st_mtime == 1500000000
    assert data("GET", "/data/dav/home/a.txt").body == b"hello"
    assert data("PUT", "/data/dav/home/a.txt", b"x", {"X-OC-Mtime": "y"}).status == 422
    assert data("PUT", "/data/dav/home/none/a.txt", b"x").status == 409


def test_folders_are_made(data: Client, home: Path) -> None:
    assert data("MKCOL", "/data/dav/home/new").status == 201
    assert data("MKCOL", "/data/dav/home/new").status == 405
    assert data("MKCOL", "/data/dav/home/none/new").status == 409
    assert data("MKCOL", "/data/dav/home/b", b"<x/>").status == 415
    assert (home / "new").is_dir()


def test_trees_are_deleted_and_links_in_them_not_followed(
    data: Client, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/precious").write_text("x")
    (home / "tree/deep").mkdir(parents=True)
    (home / "tree/deep/file").write_text("x")
    (home / "tree/link").symlink_to(tmp_path / "outside")
    assert data("DELETE", "/data/dav/home/tree").status == 204
    assert not (home / "tree").exists()
    assert (tmp_path / "outside/precious").exists()
    assert data("DELETE", "/data/dav/home/tree").status == 404
    assert data("DELETE", "/data/dav/home").status == 405
    assert data("DELETE", "/data/dav/home/storage").status == 409
    assert data("MOVE", "/data/dav/home/storage", headers=to("home/x")).status == 409
    assert (home / "storage/data").is_dir()


def test_files_and_trees_are_copied(data: Client, home: Path) -> None:
    (home / "tree/deep").mkdir(parents=True)
    (home / "tree/deep/file").write_text("x")
    (home / "tree/deep/file").chmod(0o750)
    (home / "tree/link").symlink_to("/etc/passwd")
    assert data("COPY", "/data/dav/home/tree", headers=to("storage/copy")).status == 201
    copied = home / "storage/copy/deep/file"
    assert (copied.read_text(), copied.stat().st_mode & 0o777) == ("x", 0o750)
    assert os.readlink(home / "storage/copy/link") == "/etc/passwd"
    shallow = to("home/shallow", Depth="0")
    assert data("COPY", "/data/dav/home/tree", headers=shallow).status == 201
    assert list((home / "shallow").iterdir()) == []
    assert data("COPY", "/data/dav/home/tree/deep/file", headers=to("home/f")).status == 201
    assert data("COPY", "/data/dav/home/tree/deep/file", headers=to("home/f")).status == 204


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("COPY", "home/tree", to("home/tree/inner"), 403),
        ("MOVE", "home/tree", to("home/tree"), 403),
        ("COPY", "home/storage", to("storage/inner"), 403),
        ("MOVE", "home/tree", to("home/other", Overwrite="F"), 412),
        ("COPY", "home/file", to("home/other", Overwrite="f"), 412),
        ("COPY", "home/file", to("home/new", Overwrite="yes"), 400),
        ("COPY", "home/tree", to("home/fifo"), 409),
        ("COPY", "home/tree", to("home/new", Depth="1"), 400),
        ("MOVE", "home/tree", to("home/new", Depth="0"), 400),
        ("DELETE", "home/tree", {"Depth": "0"}, 400),
        ("COPY", "home/file", to("home/"), 403),
        ("COPY", "home/file", to("home/storage"), 409),
        ("COPY", "home/file", to("home/new#x"), 400),
        ("MOVE", "home/file", to("home/file2", Overwrite="F"), 412),
        ("MOVE", "home/none", to("home/x"), 404),
        ("MOVE", "home/file", to("home/none/x"), 409),
        ("MOVE", "home/file", {"Destination": "/data/files/home/x"}, 502),
        ("MOVE", "home/file", {"Destination": "https://example.org/data/dav/home/x"}, 502),
        ("MOVE", "home/file", {"Destination": "http://[x/data/dav/home/x"}, 502),
        ("MOVE", "home/file", {}, 400),
        ("PUT", "home/tree", {}, 405),
        ("GET", "home/tree", {}, 405),
        ("MKCOL", "home/tree", {}, 405),
        ("MKCOL", "home/none/x", {}, 409),
        ("LOCK", "home/file", {}, 400),
        ("LOCK", "home", {}, 405),
        ("POST", "home/file", {}, 405),
    ],
)
def test_what_is_refused_changes_nothing(
    data: Client, home: Path, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    (home / "tree").mkdir()
    (home / "other").mkdir()
    (home / "file").write_text("1")
    (home / "file2").write_text("2")
    os.mkfifo(home / "fifo")
    answer = data(method, f"/data/dav/{path}", headers=headers)
    assert answer.status == status
    assert status != 405 or answer.headers["Allow"].startswith("OPTIONS, PROPFIND")
    names = (each.name for each in home.iterdir())
    assert sorted(name for name in names if name != ".slipway") == [
        "fifo",
        "file",
        "file2",
        "other",
        "storage",
        "tree",
    ]
    assert (home / "file2").read_text() == "2"


def test_files_and_folders_are_moved(data: Client, home: Path) -> None:
    (home / "tree").mkdir()
    (home / "tree/file").write_text("1")
    assert data("MOVE", "/data/dav/home/tree", headers=to("storage/moved")).status == 201
    assert data("MOVE", "/data/dav/storage/moved/file", headers=to("home/file")).status == 201
    (home / "file2").write_text("2")
    assert data("MOVE", "/data/dav/home/file2", headers=to("home/file")).status == 204
    assert (home / "file").read_text() == "2"
    assert not (home / "tree").exists()


def test_who_may_only_read_changes_nothing(client: Callable[[str], Client], home: Path) -> None:
    reader = client("read")
    assert reader("PROPFIND", "/data/dav/home", headers={"Depth": "0"}).status == 207
    for method in ("PUT", "MKCOL", "DELETE", "COPY", "MOVE", "PROPPATCH", "LOCK"):
        assert reader(method, "/data/dav/home/storage").status == 403, method

"""Uploads by tus, against a real server."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.node.file_server.server import FileServer
from tests.unit.node.file_server.conftest import Client
from tests.unit.node.file_server.uploads.conftest import CHUNK, TUS, Tus, metadata, parts, problem

BODY = os.urandom(100_000)


def records(home: Path) -> list[Path]:
    return list((home / ".slipway/files/uploads").glob("*"))


def test_a_file_in_two_chunks_appears_when_it_is_complete(tus: Tus, home: Path) -> None:
    url = tus.begin("home/storage/data/a%20b.bin", len(BODY), modified="1500000000.5")
    first = tus.patch(url, 0, BODY[:60_000])
    assert (first.status, first.headers["Upload-Offset"]) == (204, "60000")
    assert "Upload-Expires" in first.headers
    target = home / "storage/data/a b.bin"
    assert not target.exists()
    found = tus.head(url)
    assert (found.headers["Upload-Offset"], found.headers["Upload-Length"]) == ("60000", "100000")
    last = tus.patch(url, 60_000, BODY[60_000:])
    assert last.headers["Upload-Final-Path"] == "home/storage/data/a%20b.bin"
    assert target.read_bytes() == BODY
    assert target.stat().st_mtime == 1500000000.5
    assert parts(home / "storage") == []
    assert tus.head(url).headers["Upload-Offset"] == "100000"


def test_what_the_server_can_do(data: Client) -> None:
    found = data("OPTIONS", "/data/uploads/")
    assert found.status == 204
    assert found.headers["Tus-Version"] == "1.0.0"
    assert "termination" in found.headers["Tus-Extension"].split(",")
    assert found.headers["Tus-Checksum-Algorithm"] == "sha1,sha256"
    assert data("POST", "/data/uploads/").status == 412


def test_a_small_file_comes_with_its_creation(data: Client, home: Path) -> None:
    values = metadata(path="home/new/deep/x.txt", modified="1500000000")
    head = {**CHUNK, "Upload-Length": "5", "Upload-Metadata": values}
    found = data("POST", "/data/uploads/", b"hello", head)
    assert (found.status, found.headers["Upload-Offset"]) == (201, "5")
    target = home / "new/deep/x.txt"
    assert (target.read_bytes(), target.stat().st_mtime) == (b"hello", 1500000000)
    assert records(home) == []


def test_an_empty_file(tus: Tus, home: Path) -> None:
    found = tus.create("home/empty", 0)
    assert (found.status, found.headers["Upload-Offset"]) == (201, "0")
    assert (home / "empty").read_bytes() == b""


@pytest.mark.parametrize(
    ("headers", "status", "code", "field"),
    [
        ({"Upload-Length": "-1"}, 400, "value", "Upload-Length"),
        ({"Upload-Length": "9" * 19}, 400, "value", "Upload-Length"),
        ({"Upload-Length": str(2**62 // 10)}, 507, "full", ""),
        ({"Upload-Metadata": ""}, 422, "value", "path"),
        ({"Upload-Metadata": "path ?"}, 400, "value", "Upload-Metadata"),
        ({"Upload-Metadata": metadata(path="home")}, 422, "value", "path"),
        ({"Upload-Metadata": metadata(path="home/../x")}, 422, "name", "path"),
        ({"Upload-Metadata": metadata(path="none/x")}, 404, "not_found", ""),
        ({"Upload-Metadata": metadata(path="home/storage")}, 409, "exists", "path"),
        ({"Upload-Metadata": metadata(path="home/file/x")}, 409, "not_folder", "path"),
        ({"Upload-Metadata": metadata(path="home/.slipway-x")}, 404, "not_found", ""),
        ({"Upload-Metadata": metadata(path="home/a", modified="nan")}, 422, "value", "modified"),
        ({"Upload-Metadata": metadata(path="home/a", sha256="12")}, 422, "value", "sha256"),
        (
            {"Upload-Metadata": metadata(path="home/a", on_conflict="x")},
            422,
            "value",
            "on_conflict",
        ),
        ({"Upload-Defer-Length": "1"}, 400, "value", "Upload-Defer-Length"),
    ],
)
def test_a_wrong_creation_names_the_field_and_leaves_nothing(
    data: Client, home: Path, headers: dict[str, str], status: int, code: str, field: str
) -> None:
    (home / "file").write_text("x")
    right = {**TUS, "Upload-Length": "10", "Upload-Metadata": metadata(path="home/a")}
    found = data("POST", "/data/uploads/", headers={**right, **headers})
    assert (found.status, found.json["code"], found.json["field"]) == (status, code, field)
    assert found.headers["Tus-Resumable"] == "1.0.0"
    assert sorted(p.name for p in home.iterdir() if p.name != ".slipway") == ["file", "storage"]
    assert records(home) == []


def test_a_wrong_offset_says_the_right_one(tus: Tus) -> None:
    url = tus.begin("home/a", 10)
    found = tus.patch(url, 3, b"xxx")
    assert problem(found) == (409, "offset")
    assert found.json["detail"] == "0 bytes of this upload have arrived."


def test_more_than_announced_is_refused(tus: Tus, home: Path) -> None:
    url = tus.begin("home/a", 10)
    assert problem(tus.patch(url, 0, b"x" * 11)) == (413, "too_large")
    assert tus.head(url).headers["Upload-Offset"] == "0"


def test_a_name_that_appears_meanwhile_is_not_replaced(tus: Tus, home: Path) -> None:
    url = tus.begin("home/a.txt", 3)
    (home / "a.txt").write_text("of somebody else")
    assert problem(tus.patch(url, 0, b"new")) == (409, "exists")
    assert (home / "a.txt").read_text() == "of somebody else"
    assert tus.head(url).status == 409
    found = tus.patch(url, 3, b"", Upload_On_Conflict="rename")
    assert found.headers["Upload-Final-Path"] == "home/a%20(2).txt"
    assert (home / "a (2).txt").read_text() == "new"


def test_a_name_that_exists_can_be_replaced(tus: Tus, home: Path) -> None:
    (home / "a.txt").write_text("old")
    (home / "a.txt").chmod(0o640)
    assert problem(tus.create("home/a.txt", 3)) == (409, "exists")
    url = tus.begin("home/a.txt", 3, on_conflict="replace")
    assert tus.patch(url, 0, b"new").status == 204
    assert (home / "a.txt").read_text() == "new"
    assert (home / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_name_that_exists_can_be_numbered(tus: Tus, home: Path) -> None:
    for number, name in enumerate(("b.tar", "b (2).tar", "b (3).tar")):
        url = tus.begin("home/b.tar", 1, on_conflict="rename")
        tus.patch(url, 0, b"%d" % number)
        assert (home / name).read_text() == str(number)


def test_a_folder_is_never_replaced(tus: Tus, home: Path) -> None:
    assert problem(tus.create("home/storage", 3, on_conflict="replace")) == (409, "special")
    url = tus.begin("home/x", 3, on_conflict="replace")
    (home / "x").mkdir()
    assert tus.patch(url, 0, b"new").status == 409
    assert (home / "x").is_dir()


def test_an_upload_over_a_link_follows_it_only_inside(tus: Tus, home: Path, tmp_path: Path) -> None:
    (home / "storage/data/real").write_text("old")
    (home / "inside").symlink_to("storage/data/real")
    (tmp_path / "outside").write_text("mine")
    (home / "out").symlink_to(tmp_path / "outside")
    assert problem(tus.create("home/inside", 3)) == (409, "exists")
    tus.patch(tus.begin("home/inside", 3, on_conflict="replace"), 0, b"new")
    assert (home / "storage/data/real").read_text() == "new"
    assert (home / "inside").is_symlink()
    assert problem(tus.create("home/out", 3, on_conflict="replace")) == (403, "outside")
    assert (tmp_path / "outside").read_text() == "mine"


def test_checksums_of_chunks(tus: Tus, home: Path) -> None:
    url = tus.begin("home/a", 6)
    right = base64.b64encode(hashlib.sha1(b"abc", usedforsecurity=False).digest()).decode()
    wrong = base64.b64encode(hashlib.sha256(b"abd").digest()).decode()
    assert tus.patch(url, 0, b"abc", Upload_Checksum=f"sha1 {right}").status == 204
    assert problem(tus.patch(url, 3, b"abc", Upload_Checksum=f"sha256 {wrong}")) == (
        460,
        "checksum",
    )
    assert tus.head(url).headers["Upload-Offset"] == "3"
    found = tus.patch(url, 3, b"abc", Upload_Checksum="md5 abcd")
    assert (problem(found), found.json["field"]) == ((400, "checksum"), "Upload-Checksum")
    assert tus.patch(url, 3, b"abc", Upload_Checksum=f"sha1 {right}").status == 204
    assert (home / "a").read_text() == "abcabc"


def test_the_checksum_of_the_file_is_compared_at_the_end(tus: Tus, home: Path) -> None:
    digest = hashlib.sha256(BODY).hexdigest()
    url = tus.begin("home/right", len(BODY), sha256=digest)
    tus.patch(url, 0, BODY[:1000])
    assert tus.patch(url, 1000, BODY[1000:]).status == 204
    url = tus.begin("home/wrong", len(BODY), sha256=digest)
    assert problem(tus.patch(url, 0, BODY[::-1])) == (460, "checksum")
    assert not (home / "wrong").exists()
    assert parts(home) == []
    assert tus.head(url).status == 404


def test_a_part_that_was_deleted_is_gone(tus: Tus, home: Path) -> None:
    url = tus.begin("home/new/a", 10)
    (part,) = parts(home / "new")
    part.unlink()
    assert problem(tus.patch(url, 0, b"xxx")) == (410, "gone")
    assert tus.head(url).status == 410


def test_a_folder_that_was_deleted_is_not_made_again(tus: Tus, home: Path) -> None:
    url = tus.begin("home/new/a", 10)
    (home / "new").rename(home / "other")
    assert problem(tus.patch(url, 0, b"xxx")) == (410, "gone")
    assert not (home / "new").exists()
    (home / "new").write_text("now a file")
    assert problem(tus.patch(url, 0, b"xxx")) == (410, "gone")


def test_another_file_in_the_place_of_the_part_is_not_written_to(tus: Tus, home: Path) -> None:
    (home / "thesis").write_text("precious")
    url = tus.begin("home/new/a", 20)
    (part,) = parts(home / "new")
    part.unlink()
    (home / "thesis").rename(part)
    assert problem(tus.patch(url, 8, b"xxx")) == (410, "gone")
    assert part.read_text() == "precious"
    part.rename(home / "thesis")
    part.symlink_to(home / "thesis")
    assert problem(tus.patch(url, 8, b"xxx")) == (410, "gone")
    part.unlink()
    os.mkfifo(part)
    assert problem(tus.patch(url, 0, b"xxx")) == (410, "gone")


def test_an_upload_can_be_ended(tus: Tus, control: Client, home: Path) -> None:
    url = tus.begin("home/new/a", 10)
    tus.patch(url, 0, b"xxx")
    assert tus.delete(url).status == 204
    assert parts(home / "new") == []
    assert problem(tus.patch(url, 3, b"xxx")) == (404, "no_upload")
    url = tus.begin("home/new/a", 10)
    assert control("DELETE", f"/v1/uploads/{url.rsplit('/', 1)[1]}").status == 204
    assert (parts(home / "new"), records(home)) == ([], [])


def test_the_unfinished_ones_are_listed(tus: Tus, control: Client) -> None:
    url = tus.begin("home/new/%E9%0A", 10)
    tus.patch(url, 0, b"xxx")
    tus.patch(tus.begin("home/done", 1), 0, b"x")
    (found,) = control("GET", "/v1/uploads").json["uploads"]
    assert found["id"] == url.rsplit("/", 1)[1]
    assert (found["path"], found["name"]) == ("home/new/%E9%0A", "?\n")
    assert (found["length"], found["offset"]) == (10, 3)
    assert 47 * 3600 < found["expires"] - found["created"] <= 48 * 3600 + 5


def test_who_may_only_read_may_not_upload(client: Callable[[str], Client]) -> None:
    reader = client("read")
    assert reader("POST", "/data/uploads/", headers=TUS).status == 403
    assert reader("OPTIONS", "/data/uploads/").status == 204


def test_addresses_that_are_no_uploads(tus: Tus, data: Client) -> None:
    for id in ("0" * 32, "..", "x", "%2e%2e", "a/b"):
        assert tus.head(f"/data/uploads/{id}").status == 404, id
    assert data("GET", "/data/uploads/", headers=TUS).status == 405
    url = tus.begin("home/a", 10)
    override = {**TUS, "X-HTTP-Method-Override": "DELETE"}
    assert data("POST", url, headers=override).status == 204
    assert tus.head(url).status == 404


def test_a_mistake_of_the_server_is_answered(
    tus: Tus, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.files.uploads, "create", None)
    assert problem(tus.create("home/a", 10)) == (500, "error")

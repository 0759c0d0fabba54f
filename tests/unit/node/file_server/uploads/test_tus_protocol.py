"""What tus 1.0.0 demands of a server: one test for each MUST, in the order of its text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests.unit.node.file_server.conftest import Answer, Client
from tests.unit.node.file_server.uploads.conftest import CHUNK, TUS, Tus, metadata, parts, problem

ENDPOINT = "/data/uploads/"


def extensions(data: Client) -> list[str]:
    return data("OPTIONS", ENDPOINT).headers["Tus-Extension"].split(",")


def sha1(text: bytes) -> str:
    digest = hashlib.sha1(text, usedforsecurity=False).digest()
    return f"sha1 {base64.b64encode(digest).decode()}"


# Core: headers


@pytest.mark.parametrize("text", ["-1", "1.0", "0x1", "", " ", "\u0661", "1e3"])
def test_an_offset_is_a_non_negative_integer(tus: Tus, text: str) -> None:
    url = tus.begin("home/a", 10)
    found = tus.patch(url, 0, b"x", Upload_Offset=text.encode().decode("latin-1"))
    assert (found.status, found.json["field"]) == (400, "Upload-Offset")
    assert tus.head(url).headers["Upload-Offset"] == "0"


@pytest.mark.parametrize("text", ["-1", "1.0", "0x1", "", "1e3"])
def test_a_length_is_a_non_negative_integer(tus: Tus, home: Path, text: str) -> None:
    found = tus.post(Upload_Length=text, Upload_Metadata=metadata(path="home/a"))
    assert (found.status, found.json["field"]) == (400, "Upload-Length")
    assert parts(home) == []


def test_versions_are_a_list_with_the_preferred_one_first(data: Client) -> None:
    assert data("OPTIONS", ENDPOINT).headers["Tus-Version"] == "1.0.0"


def test_every_response_has_the_version(tus: Tus, data: Client) -> None:
    url = tus.begin("home/a", 3)
    for found in (
        tus.create("home/b", 1),
        tus.create("none/b", 1),
        tus.head(url),
        tus.head(ENDPOINT + "0" * 32),
        tus.patch(url, 2, b"x"),
        tus.patch(url, 0, b"xxx"),
        data("GET", url, headers=TUS),
        data("PATCH", url),
        tus.delete(url),
    ):
        assert found.headers["Tus-Resumable"] == "1.0.0"


@pytest.mark.parametrize("version", [None, "0.2.2", "1.0.1", "1.0", ""])
def test_another_version_is_refused_with_the_known_ones(
    tus: Tus, data: Client, home: Path, version: str | None
) -> None:
    url = tus.begin("home/a", 3)
    kept = {} if version is None else {"Tus-Resumable": version}
    head = {"Upload-Offset": "0", "Content-Type": CHUNK["Content-Type"]}
    new = {"Upload-Length": "0", "Upload-Metadata": metadata(path="home/b")}
    for found in (
        data("HEAD", url, headers=kept),
        data("PATCH", url, b"xxx", {**head, **kept}),
        data("DELETE", url, headers=kept),
        data("POST", ENDPOINT, headers={**new, **kept}),
    ):
        assert (found.status, found.headers["Tus-Version"]) == (412, "1.0.0")
    assert tus.head(url).headers["Upload-Offset"] == "0"
    assert not (home / "b").exists()


def test_the_extensions_are_those_that_work(data: Client) -> None:
    assert set(extensions(data)) == {
        "creation",
        "creation-defer-length",
        "creation-with-upload",
        "expiration",
        "checksum",
        "termination",
        "concatenation",
    }


def test_another_method_in_a_header_counts(
    tus: Tus, data: Client, client: Callable[[str], Client]
) -> None:
    url = tus.begin("home/a", 3)
    for method in ("POST", "GET", "PUT"):
        override = {**CHUNK, "X-HTTP-Method-Override": "PATCH", "Upload-Offset": "0"}
        assert client("files")(method, url, b"", override).status == 204
    override = {**TUS, "X-HTTP-Method-Override": "HEAD"}
    assert data("GET", url, headers=override).headers["Upload-Offset"] == "0"
    override = {**TUS, "X-HTTP-Method-Override": "DELETE"}
    assert client("read")("GET", url, headers=override).status == 403
    assert data("POST", url, headers=override).status == 204
    assert tus.head(url).status == 404


# Core: requests


def test_head_has_offset_and_length_and_is_not_cached(tus: Tus) -> None:
    url = tus.begin("home/new/a", 3)
    for offset in ("0", "3"):
        found = tus.head(url)
        assert found.status == 200
        assert (found.headers["Upload-Offset"], found.headers["Upload-Length"]) == (offset, "3")
        assert found.headers["Cache-Control"] == "no-store"
        tus.patch(url, 0, b"xxx")


def test_head_of_a_file_that_came_with_its_creation(tus: Tus) -> None:
    values = metadata(path="home/a", filename="a")
    for text in (b"hello", b""):
        created = tus.post(text, Upload_Length=str(len(text)), Upload_Metadata=values)
        assert created.status == 201
        found = tus.head(created.headers["Location"])
        assert (found.status, found.headers["Upload-Metadata"]) == (200, values)
        assert found.headers["Upload-Offset"] == found.headers["Upload-Length"] == str(len(text))
        assert tus.delete(created.headers["Location"]).status == 204
        assert tus.head(created.headers["Location"]).status == 404
        values = metadata(path="home/b", filename="a")


def test_head_of_what_is_not_there_has_no_offset(tus: Tus) -> None:
    found = tus.head(ENDPOINT + "0" * 32)
    assert found.status == 404
    assert "Upload-Offset" not in found.headers
    assert found.headers["Cache-Control"] == "no-store"


def test_head_of_a_complete_upload_whose_name_is_taken_has_the_offset(tus: Tus, home: Path) -> None:
    url = tus.begin("home/a", 3)
    (home / "a").write_text("of somebody else")
    tus.patch(url, 0, b"xxx")
    found = tus.head(url)
    assert (found.status, found.headers["Upload-Offset"]) == (409, "3")


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/offset+octet-stream", 204),
        ("Application/Offset+Octet-Stream", 204),
        ("application/offset+octet-stream; charset=utf-8", 204),
        ("application/offset+octet-stream;x=y", 204),
        ("application/octet-stream", 415),
        ("application/offset+octet-streams", 415),
        ("", 415),
    ],
)
def test_the_media_type_is_compared_without_case_and_parameters(
    tus: Tus, kind: str, status: int
) -> None:
    url = tus.begin("home/a", 10)
    assert tus.patch(url, 0, b"xxx", Content_Type=kind).status == status
    assert tus.head(url).headers["Upload-Offset"] == ("3" if status == 204 else "0")


def test_another_offset_changes_nothing(tus: Tus) -> None:
    url = tus.begin("home/a", 10)
    tus.patch(url, 0, b"xxx")
    for offset in (0, 2, 4, 10):
        assert tus.patch(url, offset, b"y").status == 409
    assert tus.head(url).headers["Upload-Offset"] == "3"


def test_the_new_offset_is_the_sum(tus: Tus, home: Path) -> None:
    url = tus.begin("home/a", 10)
    for offset, text in ((0, b"0123"), (4, b""), (4, b"456789")):
        found = tus.patch(url, offset, text)
        assert found.status == 204
        assert found.headers["Upload-Offset"] == str(offset + len(text))
    assert (home / "a").read_bytes() == b"0123456789"


def test_data_for_what_is_not_there(tus: Tus) -> None:
    assert tus.patch(ENDPOINT + "0" * 32, 0, b"x").status == 404


def test_options_ignores_the_version(data: Client, tus: Tus) -> None:
    for headers in ({}, TUS, {"Tus-Resumable": "0.1"}):
        for url in (ENDPOINT, ENDPOINT.rstrip("/"), ENDPOINT + "0" * 32):
            found = data("OPTIONS", url, headers=headers)
            assert (found.status, found.headers["Tus-Version"]) == (204, "1.0.0")


def test_other_methods_are_told_the_right_ones(tus: Tus, data: Client) -> None:
    found = data("GET", ENDPOINT, headers=TUS)
    assert (found.status, found.headers["Allow"]) == (405, "POST, OPTIONS")
    found = data("GET", tus.begin("home/a", 3), headers=TUS)
    assert (found.status, found.headers["Allow"]) == (405, "HEAD, PATCH, DELETE, OPTIONS")


# Creation


def test_a_creation_has_one_kind_of_length(tus: Tus) -> None:
    values = metadata(path="home/a")
    for headers, field in (
        ({}, "Upload-Length"),
        ({"Upload_Defer_Length": "2"}, "Upload-Defer-Length"),
        ({"Upload_Defer_Length": "0"}, "Upload-Defer-Length"),
        ({"Upload_Defer_Length": "1", "Upload_Length": "3"}, "Upload-Defer-Length"),
    ):
        found = tus.post(Upload_Metadata=values, **headers)
        assert (found.status, found.json["field"]) == (400, field), headers


def deferred(tus: Tus, path: str) -> str:
    found = tus.post(Upload_Defer_Length="1", Upload_Metadata=metadata(path=path))
    assert found.status == 201, found.body
    return found.headers["Location"]


def test_the_length_may_come_later_and_then_stays(tus: Tus, home: Path) -> None:
    url = deferred(tus, "home/new/a")
    assert tus.patch(url, 0, b"0123").status == 204
    found = tus.head(url)
    assert (found.headers["Upload-Defer-Length"], found.headers["Upload-Offset"]) == ("1", "4")
    assert "Upload-Length" not in found.headers
    assert tus.patch(url, 4, b"", Upload_Length="3").status == 400
    assert tus.patch(url, 4, b"456789", Upload_Length="20").status == 204
    found = tus.head(url)
    assert (found.headers["Upload-Length"], found.headers["Upload-Offset"]) == ("20", "10")
    assert "Upload-Defer-Length" not in found.headers
    found = tus.patch(url, 10, b"x", Upload_Length="11")
    assert (found.status, found.json["field"]) == (400, "Upload-Length")
    assert tus.patch(url, 10, b"x" * 10, Upload_Length="20").status == 204
    assert (home / "new/a").read_bytes() == b"0123456789xxxxxxxxxx"


def test_the_length_may_come_after_all_data(tus: Tus, home: Path) -> None:
    url = deferred(tus, "home/new/a")
    assert tus.patch(url, 0, b"0123").status == 204
    assert not (home / "new/a").exists()
    assert tus.patch(url, 4, b"", Upload_Length="4").status == 204
    assert (home / "new/a").read_bytes() == b"0123"


def test_an_empty_file_is_complete_at_once(tus: Tus, home: Path) -> None:
    assert tus.create("home/empty", 0).headers["Upload-Offset"] == "0"
    assert (home / "empty").read_bytes() == b""


def encoded(path: str = "home/a") -> str:
    return base64.b64encode(path.encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        f"path {encoded()},filename d29ybGQ=,is_confidential",
        f"is_confidential,path {encoded()}",
        f"empty ,path {encoded()}",
        f"path {encoded()}, filename d29ybGQ=",
        f"path {encoded()},binary /////w==",
    ],
)
def test_metadata_come_back_as_they_were_sent(tus: Tus, text: str) -> None:
    created = tus.post(Upload_Length="3", Upload_Metadata=text)
    assert created.status == 201, created.body
    assert tus.head(created.headers["Location"]).headers["Upload-Metadata"] == text


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"path {encoded()},path {encoded('home/b')}", "path"),
        (f"path {encoded()},a,a", "a"),
        (f"path {encoded()},filename ?", "filename"),
        (f"path {encoded()},filename d29ybGQ", "filename"),
        (f"path {encoded()},filename d29y bGQ=", "filename"),
        (f"path {encoded()},filename  d29ybGQ=", "filename"),
        (f"path {encoded()},,b", ""),
        (f"path {encoded()},", ""),
        (f"path {encoded()},\x7f eA==", "\x7f"),
        (f"path {encoded()},k\xe9y eA==", "k\xe9y"),
    ],
)
def test_metadata_that_are_wrong_name_the_key(tus: Tus, home: Path, text: str, key: str) -> None:
    found = tus.post(Upload_Length="3", Upload_Metadata=text)
    assert (found.status, found.json["field"]) == (400, "Upload-Metadata")
    assert f"“{key}”" in found.json["detail"]
    assert parts(home) == []


def test_a_folded_header_does_not_become_two(tus: Tus, home: Path) -> None:
    line = tus.client.connection
    line.putrequest("POST", ENDPOINT)
    for name, value in {**TUS, "Upload-Length": "3"}.items():
        line.putheader(name, value)
    line.putheader("Upload-Metadata", f"path {encoded()}", "Set-Cookie: a=b")
    line.endheaders()
    found = line.getresponse()
    found.read()
    assert (found.status, parts(home)) == (400, [])


def test_a_creation_has_a_location(tus: Tus) -> None:
    found = tus.create("home/a", 3)
    assert found.status == 201
    assert found.headers["Location"].startswith(ENDPOINT)


def test_data_with_the_creation(tus: Tus, home: Path) -> None:
    values = metadata(path="home/a")
    found = tus.post(b"012", Upload_Length="5", Upload_Metadata=values)
    assert (found.status, found.headers["Upload-Offset"]) == (201, "3")
    assert tus.patch(found.headers["Location"], 3, b"34").status == 204
    assert (home / "a").read_bytes() == b"01234"
    found = tus.post(b"012", Upload_Length="5", Upload_Metadata=values, Content_Type="text/plain")
    assert found.status == 415
    found = tus.post(b"012", Upload_Defer_Length="1", Upload_Metadata=metadata(path="home/b"))
    assert (found.status, found.headers["Upload-Offset"]) == (201, "3")


# Expiration


def test_expiry_is_said_and_true(tus: Tus, home: Path) -> None:
    created = tus.create("home/new/a", 10)
    url = created.headers["Location"]
    (part,) = parts(home / "new")
    for found in (created, tus.patch(url, 0, b"x"), tus.head(url)):
        expiry = parsedate_to_datetime(found.headers["Upload-Expires"]).timestamp()
        assert expiry == pytest.approx(part.stat().st_mtime + 48 * 3600, abs=5)


# Checksum


def test_a_wrong_checksum_discards_the_chunk(tus: Tus, data: Client) -> None:
    assert "sha1" in data("OPTIONS", ENDPOINT).headers["Tus-Checksum-Algorithm"].split(",")
    url = tus.begin("home/a", 6)
    assert tus.patch(url, 0, b"abc", Upload_Checksum=sha1(b"abc")).status == 204
    assert tus.patch(url, 3, b"abd", Upload_Checksum=sha1(b"abc")).status == 460
    assert tus.patch(url, 3, b"abc", Upload_Checksum="crc32 AAAA").status == 400
    assert tus.patch(url, 3, b"abc", Upload_Checksum="sha1").status == 400
    assert tus.head(url).headers["Upload-Offset"] == "3"


# Termination


def test_a_terminated_upload_is_gone(tus: Tus, home: Path) -> None:
    unfinished, complete = tus.begin("home/new/a", 3), tus.begin("home/new/b", 1)
    tus.patch(complete, 0, b"x")
    for url in (unfinished, complete):
        assert tus.delete(url).status == 204
        for found in (tus.head(url), tus.patch(url, 0, b"x"), tus.delete(url)):
            assert found.status == 404
    assert [path.name for path in (home / "new").iterdir()] == ["b"]


# Concatenation


def joined(tus: Tus) -> tuple[list[str], Answer]:
    urls = [tus.partial(b"hello"), tus.partial(b" world")]
    return urls, tus.final(urls, "home/new/ab")


def test_parts_are_joined_in_the_order_of_the_list(tus: Tus, home: Path) -> None:
    (hello, world), found = joined(tus)
    assert (found.status, found.headers["Upload-Offset"]) == (201, "11")
    assert (home / "new/ab").read_bytes() == b"hello world"
    found = tus.head(found.headers["Location"])
    assert found.headers["Upload-Offset"] == found.headers["Upload-Length"] == "11"
    assert found.headers["Upload-Concat"] == f"final;{hello} {world}"
    assert found.headers["Upload-Metadata"] == metadata(path="home/new/ab")


def test_a_partial_upload_is_not_a_file(tus: Tus, home: Path) -> None:
    url = tus.partial(b"hello", Upload_Metadata=metadata(path="home/new/a", sha256="x"))
    assert not (home / "new/a").exists()
    found = tus.head(url)
    assert (found.headers["Upload-Concat"], found.headers["Upload-Offset"]) == ("partial", "5")
    assert len(parts(home / "new")) == 1


def test_a_partial_upload_may_be_there_twice(tus: Tus, home: Path) -> None:
    url = tus.partial(b"ab")
    assert tus.final([url, url, url], "home/new/a").status == 201
    assert (home / "new/a").read_bytes() == b"ababab"


def test_partial_uploads_whose_length_was_deferred(tus: Tus, home: Path) -> None:
    found = tus.post(b"ab", Upload_Concat="partial", Upload_Defer_Length="1")
    url = found.headers["Location"]
    assert problem(tus.final([url], "home/new/a")) == (409, "unfinished")
    assert tus.patch(url, 2, b"c", Upload_Length="3").status == 204
    assert tus.final([url], "home/new/a").status == 201
    assert (home / "new/a").read_bytes() == b"abc"


@pytest.mark.parametrize("name", ["Upload_Length", "Upload_Defer_Length"])
def test_a_final_upload_has_no_length_of_its_own(tus: Tus, home: Path, name: str) -> None:
    url = tus.partial(b"x")
    more = {"Upload_Metadata": metadata(path="home/a"), name: "1"}
    found = tus.post(Upload_Concat=f"final;{url}", **more)
    assert (found.status, found.json["field"]) == (400, name.replace("_", "-"))
    assert not (home / "a").exists()


def test_a_final_upload_takes_no_data(tus: Tus, home: Path) -> None:
    _, found = joined(tus)
    assert tus.patch(found.headers["Location"], 11, b"x").status == 403
    assert (home / "new/ab").read_bytes() == b"hello world"
    url = tus.partial(b"x")
    values = metadata(path="home/new/c")
    found = tus.post(b"x", Upload_Concat=f"final;{url}", Upload_Metadata=values)
    assert found.status == 403
    assert not (home / "new/c").exists()


@pytest.mark.parametrize(
    "text",
    [
        "final",
        "final;",
        "Partial",
        f"partial;/data/uploads/{'0' * 32}",
        f"final;/other/{'0' * 32}",
        "final;/data/uploads/../x",
        f"final;http://a b/data/uploads/{'0' * 32}",
    ],
)
def test_a_value_of_concat_that_is_wrong(tus: Tus, home: Path, text: str) -> None:
    found = tus.post(Upload_Concat=text, Upload_Metadata=metadata(path="home/a"))
    assert (found.status, found.json["field"]) == (400, "Upload-Concat")
    assert parts(home) == []


def test_urls_may_be_absolute(tus: Tus, home: Path) -> None:
    url = tus.partial(b"x")
    assert tus.final([f"https://tus.example.org{url}"], "home/a").status == 201
    assert (home / "a").read_bytes() == b"x"

"""Preconditions of RFC 9110, 13, at both doors, and ranges that are not written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.renames import rename_new
from tests.unit.node.file_server.conftest import Answer, Client

FILES, DAV = "/data/files/home/file", "/data/dav/home/file"
TIME = 1_500_000_000
DATE, BEFORE, AFTER = (
    "Fri, 14 Jul 2017 02:40:00 GMT",
    "Fri, 14 Jul 2017 02:39:59 GMT",
    "Friday, 14-Jul-17 02:40:01 GMT",
)
WRONG = '"wrong"'


@pytest.fixture(params=[FILES, DAV])
def url(request: pytest.FixtureRequest, home: Path) -> str:
    """A file's URL at each door."""
    (home / "file").write_text("0123456789")
    os.utime(home / "file", (TIME, TIME))
    chosen: str = request.param
    return chosen


def tag(data: Client) -> str:
    return data("HEAD", FILES).headers["ETag"]


def ask(data: Client, url: str, method: str, headers: dict[str, str]) -> Answer:
    own = data("HEAD", url).headers.get("ETag", "")
    sent = {name: value.replace("OWN", own) for name, value in headers.items()}
    return data(method, url, b"new" if method == "PUT" else None, sent)


FAILS = [
    {"If-Match": WRONG},
    {"If-Match": f'{WRONG}, "other"'},
    {"If-Match": "W/OWN"},
    {"If-Unmodified-Since": BEFORE},
    {"If-Match": WRONG, "If-Unmodified-Since": AFTER},
]
HOLDS = [
    {"If-Match": "*"},
    {"If-Match": f"{WRONG}, OWN"},
    {"If-Match": "OWN", "If-Unmodified-Since": BEFORE},
    {"If-Unmodified-Since": DATE},
    {"If-Unmodified-Since": AFTER},
    {"If-Unmodified-Since": "yesterday"},
    {"If-None-Match": WRONG},
    {"If-None-Match": f"{WRONG}, W/{WRONG}"},
]
KNOWN = [
    {"If-None-Match": "*"},
    {"If-None-Match": "OWN"},
    {"If-None-Match": f"{WRONG},, W/OWN"},
    {"If-Match": "OWN", "If-None-Match": "OWN"},
]


@pytest.mark.parametrize("headers", FAILS)
def test_a_failed_precondition_is_412_for_every_method(
    data: Client, home: Path, url: str, headers: dict[str, str]
) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        answer = ask(data, url, method, headers)
        assert answer.status == 412, method
    assert (home / "file").read_text() == "0123456789"


@pytest.mark.parametrize("headers", HOLDS)
def test_a_precondition_that_holds_lets_every_method_through(
    data: Client, url: str, headers: dict[str, str]
) -> None:
    assert ask(data, url, "GET", headers).body == b"0123456789"
    assert ask(data, url, "PUT", headers).status == 200


@pytest.mark.parametrize("headers", KNOWN)
def test_what_the_client_knows_is_304_for_reading_and_412_for_changes(
    data: Client, home: Path, url: str, headers: dict[str, str]
) -> None:
    for method in ("GET", "HEAD"):
        answer = ask(data, url, method, headers)
        assert (answer.status, answer.body) == (304, b"")
        assert answer.headers["ETag"] == tag(data)
    for method in ("PUT", "DELETE"):
        answer = ask(data, url, method, headers)
        assert (answer.status, answer.json["code"]) == (412, "exists")
    assert (home / "file").read_text() == "0123456789"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-Modified-Since": DATE}, 304),
        ({"If-Modified-Since": AFTER}, 304),
        ({"If-Modified-Since": BEFORE}, 200),
        ({"If-Modified-Since": "never"}, 200),
        ({"If-Modified-Since": AFTER, "If-None-Match": WRONG}, 200),
        ({"If-Modified-Since": BEFORE, "If-None-Match": "OWN"}, 304),
    ],
)
def test_the_time_counts_only_without_a_tag(
    data: Client, url: str, headers: dict[str, str], status: int
) -> None:
    assert ask(data, url, "GET", headers).status == status
    if "If-None-Match" not in headers:
        assert ask(data, url, "PUT", headers).status == 200, "only GET and HEAD"


def test_several_lines_are_one_list(data: Client, url: str) -> None:
    own = tag(data)
    data.connection.putrequest("PUT", url)
    for line in (WRONG, own):
        data.connection.putheader("If-Match", line)
    data.connection.putheader("Content-Length", "0")
    data.connection.endheaders()
    answer = data.connection.getresponse()
    answer.read()
    assert answer.status == 200


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match"])
def test_a_malformed_list_is_refused_and_changes_nothing(
    data: Client, home: Path, url: str, name: str
) -> None:
    for value in ("unquoted", '"a" b', '"a', "*, *"):
        for method in ("GET", "PUT"):
            answer = ask(data, url, method, {name: value})
            assert (answer.status, answer.json["field"]) == (400, name)
    assert (home / "file").read_text() == "0123456789"


def test_preconditions_of_what_does_not_exist(data: Client, home: Path, url: str) -> None:
    (home / "file").unlink()
    for method in ("GET", "DELETE"):  # refused without them, so they do not count
        assert data(method, url, None, {"If-Match": WRONG}).status == 404
    assert data("PUT", url, b"x", {"If-Match": "*"}).status == 412
    assert not (home / "file").exists()
    date = {"If-Unmodified-Since": BEFORE, "If-None-Match": "*"}
    assert data("PUT", url, b"x", date).status == 201


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("OWN", 206),
        (DATE, 206),
        (WRONG, 200),
        ("W/OWN", 200),
        (BEFORE, 200),
        (AFTER, 200),
    ],
)
def test_if_range(data: Client, url: str, condition: str, status: int) -> None:
    headers = {"Range": "bytes=2-3", "If-Range": condition}
    answer = ask(data, url, "GET", headers)
    assert (answer.status, len(answer.body)) == (status, 2 if status == 206 else 10)


def test_a_range_counts_after_the_other_preconditions_and_only_for_get(
    data: Client, url: str
) -> None:
    part = {"Range": "bytes=2-3"}
    assert ask(data, url, "GET", {**part, "If-None-Match": "OWN"}).status == 304
    assert ask(data, url, "GET", {**part, "If-Match": WRONG}).status == 412
    assert ask(data, url, "HEAD", part).status == 200
    answer = ask(data, url, "GET", {"Range": "bytes=10-"})
    assert (answer.status, answer.headers["Content-Range"]) == (416, "bytes */10")


def test_a_link_has_the_tag_of_what_it_leads_to(data: Client, home: Path, url: str) -> None:
    link = url.replace("file", "link").replace("/data/links", "/data/files")
    (home / "link").symlink_to("file")
    assert data("DELETE", link, None, {"If-Match": WRONG}).status == 412
    assert data("DELETE", link, None, {"If-Match": tag(data)}).status == 204
    assert (home / "file").exists()


def test_the_preconditions_hold_when_the_file_is_replaced(
    data: Client, home: Path, url: str
) -> None:
    """Somebody else saves the file while a large one is sent."""
    for headers in ({"If-Match": tag(data)}, {"If-Unmodified-Since": AFTER}):
        send_slowly(data, url, headers, lambda: (home / "file").write_text("theirs"))
        assert (home / "file").read_text() == "theirs"
        os.utime(home / "file", (TIME, TIME))
    (home / "file").unlink()
    new = {"If-None-Match": "*"}
    send_slowly(data, url, new, lambda: (home / "file").write_text("theirs"))
    assert [each.name for each in home.iterdir() if each.name.startswith(".slipway-")] == []


def send_slowly(data: Client, url: str, headers: dict[str, str], meanwhile: object) -> None:
    """PUT whose body is complete only after `meanwhile`; it must be refused with 412."""
    assert callable(meanwhile)
    connection = data.connection
    connection.putrequest("PUT", url)
    for name, value in {**headers, "Content-Length": "4", "Expect": "100-continue"}.items():
        connection.putheader(name, value)
    connection.endheaders(b"mi")
    assert connection.sock is not None
    assert connection.sock.recv(100).startswith(b"HTTP/1.1 100")
    meanwhile()
    connection.send(b"ne")
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 412


def test_one_of_many_who_create_a_file_wins(
    data: Client, home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rename decides, not the check before it."""
    (home / "file").unlink()

    def rename_late(*arguments: Any) -> None:
        (home / "file").write_text("theirs")
        rename_new(*arguments)

    monkeypatch.setattr("portal.node.file_server.replacing.rename_new", rename_late)
    answer = data("PUT", url, b"mine", {"If-None-Match": "*"})
    assert (answer.status, answer.json["code"]) == (412, "exists")
    assert (home / "file").read_text() == "theirs"


# Parts of files (RFC 9110, 14.5)


@pytest.mark.parametrize("path", [FILES, DAV, "/data/dav/home/new"])
def test_put_of_a_part_is_refused_and_changes_nothing(data: Client, home: Path, path: str) -> None:
    (home / "file").write_text("0123456789")
    for value in ("bytes 5-9/10", "bytes 0-9/10", "bytes */10", "nonsense"):
        answer = data("PUT", path, b"56789", {"Content-Range": value})
        assert (answer.status, answer.json["field"]) == (400, "Content-Range")
        assert "tus" in answer.json["detail"]
    assert (home / "file").read_text() == "0123456789"
    assert not (home / "new").exists()


def test_no_control_call_takes_a_part(control: Client) -> None:
    body = {"kind": "user", "name": "bob", "access": "read"}
    headers = {"Content-Range": "bytes 0-1/9"}
    assert control("PUT", "/v1/shares/storage/data", body, headers).status == 400

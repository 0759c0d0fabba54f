"""Locks of WebDAV, as programs take, use and lose them."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from portal.node.file_server import locks
from portal.node.file_server.server import FileServer
from tests.unit.node.file_server.conftest import Answer, Client
from tests.unit.node.file_server.dav.conftest import (
    DAV,
    ask,
    condition_of,
    dav,
    lock,
    lock_info,
    set_,
    to,
    update,
)


@pytest.fixture(autouse=True)
def files(home: Path) -> None:
    """Some files."""
    for name in ("file", "tree/inner", "tree/deep/inner", "other"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("old")


def change(data: Client, method: str, path: str, token: str = "", **headers: str) -> Answer:
    """A change of `path`, with a token for it."""
    body: bytes | None = {"PUT": b"new", "PROPPATCH": update(set_("<x:a>1</x:a>"))}.get(method)
    if token:
        headers["If"] = f"({token})"
    return data(method, dav(path), body, headers)


def test_a_lock_is_described(data: Client) -> None:
    owner = "<D:owner><x:who xmlns:x='urn:x'>Ada &amp; co</x:who></D:owner>"
    answer = data("LOCK", dav("home/file"), lock_info(owner=owner), {"Depth": "0"})
    assert answer.status == 200
    token = answer.headers["Lock-Token"]
    assert re.fullmatch("<opaquelocktoken:[0-9a-f-]{36}>", token)
    (active,) = ET.fromstring(answer.body).iter(DAV + "activelock")
    assert active.findtext(f"{DAV}locktoken/{DAV}href") == token[1:-1]
    assert active.findtext(f"{DAV}lockroot/{DAV}href") == dav("home/file")
    assert active.findtext(DAV + "depth") == "0"
    assert active.findtext(f"{DAV}owner/{{urn:x}}who") == "Ada & co"
    assert active.find(f"{DAV}lockscope/{DAV}exclusive") is not None
    assert active.find(f"{DAV}locktype/{DAV}write") is not None
    assert active.findtext(DAV + "timeout") == f"Second-{locks.MOST_SECONDS}"
    status, discovery = ask(data, "home/file", DAV + "lockdiscovery")[DAV + "lockdiscovery"]
    assert status == 200
    assert discovery.findtext(f".//{DAV}locktoken/{DAV}href") == token[1:-1]
    assert data("UNLOCK", dav("home/file"), headers={"Lock-Token": token}).status == 204
    assert not len(ask(data, "home/file", DAV + "lockdiscovery")[DAV + "lockdiscovery"][1])


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("PUT", {}),
        ("PROPPATCH", {}),
        ("DELETE", {}),
        ("MOVE", to("home/new")),
    ],
)
def test_a_locked_file_is_changed_only_with_the_token(
    data: Client, home: Path, method: str, headers: dict[str, str]
) -> None:
    token = lock(data, "home/file")
    answer = change(data, method, "home/file", **headers)
    assert (answer.status, condition_of(answer)) == (423, "lock-token-submitted")
    assert ET.fromstring(answer.body).findtext(f".//{DAV}href") == dav("home/file")
    assert ((home / "file").read_text(), (home / "new").exists()) == ("old", False)
    assert os.listxattr(home / "file") == []
    assert change(data, method, "home/file", token, **headers).status < 300


@pytest.mark.parametrize("source", ["other", "tree"])
@pytest.mark.parametrize("method", ["COPY", "MOVE"])
def test_a_locked_file_is_replaced_only_with_the_token(
    data: Client, home: Path, source: str, method: str
) -> None:
    token = lock(data, "home/file")
    assert change(data, method, f"home/{source}", **to("home/file")).status == 423
    assert (home / "file").read_text() == "old"
    tagged = {"If": f"<{dav('home/file')}> ({token})"}
    assert change(data, method, f"home/{source}", **to("home/file"), **tagged).status == 204
    assert change(data, "PUT", "home/file").status in (405, 423), "the name is still locked"


def test_a_locked_file_is_read_and_copied_by_all(data: Client) -> None:
    lock(data, "home/file")
    assert data("GET", dav("home/file")).status == 200
    assert change(data, "COPY", "home/file", **to("home/copy")).status == 201
    assert change(data, "PUT", "home/copy").status == 200, "a lock is not copied"


def test_the_other_doors_do_not_see_locks(data: Client) -> None:
    """Nobody could use a page or a script while a program that was closed holds a lock."""
    lock(data, "home/file")
    assert data("PUT", "/data/files/home/file", b"new").status == 200
    assert data("DELETE", "/data/files/home/file").status == 204


# Folders


def test_a_lock_of_a_folder_with_all_in_it(data: Client, home: Path) -> None:
    token = lock(data, "home/tree")
    for method, path in (
        ("PUT", "tree/inner"),
        ("PUT", "tree/new"),
        ("PUT", "tree/deep/new"),
        ("MKCOL", "tree/deep/new"),
        ("DELETE", "tree/deep"),
        ("DELETE", "tree"),
        ("PROPPATCH", "tree/deep/inner"),
    ):
        assert change(data, method, f"home/{path}").status == 423, path
    assert change(data, "COPY", "home/file", **to("home/tree/new")).status == 423
    assert data("LOCK", dav("home/tree/new"), lock_info()).status == 423
    assert not (home / "tree/new").exists()
    assert change(data, "PUT", "home/tree/deep/new", f"{token}").status == 201
    assert change(data, "PUT", "home/file").status == 200


def test_a_lock_of_a_folder_alone_guards_its_names(data: Client) -> None:
    token = lock(data, "home/tree", Depth="0")
    assert change(data, "PUT", "home/tree/inner").status == 200
    assert change(data, "PROPPATCH", "home/tree/inner").status == 207
    assert change(data, "PUT", "home/tree/deep/new").status == 201
    for method, path in (("PUT", "new"), ("MKCOL", "new"), ("DELETE", "inner"), ("DELETE", "deep")):
        assert change(data, method, f"home/tree/{path}").status == 423
    assert change(data, "MOVE", "home/file", **to("home/tree/new")).status == 423
    assert change(data, "MOVE", "home/tree/inner", **to("home/new")).status == 423
    tagged = f"<{dav('home/tree')}> ({token})"
    assert change(data, "PUT", "home/tree/new", If=tagged).status == 201


def test_a_folder_is_not_deleted_while_something_in_it_is_locked(data: Client, home: Path) -> None:
    token = lock(data, "home/tree/deep/inner")
    for method, headers in (("DELETE", {}), ("MOVE", to("home/new"))):
        answer = change(data, method, "home/tree", **headers)
        assert answer.status == 423
        root = ET.fromstring(answer.body).findtext(f".//{DAV}href")
        assert root == dav("home/tree/deep/inner")
    assert change(data, "COPY", "home/other", **to("home/tree")).status == 423
    assert change(data, "PROPPATCH", "home/tree").status == 207, "that is not in it"
    assert (home / "tree/deep/inner").read_text() == "old"
    tagged = f"<{dav('home/tree/deep/inner')}> ({token})"
    assert change(data, "DELETE", "home/tree", If=tagged).status == 204


# Which locks go together


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("exclusive", "exclusive", 423),
        ("exclusive", "shared", 423),
        ("shared", "exclusive", 423),
        ("shared", "shared", 200),
    ],
)
@pytest.mark.parametrize(
    ("path", "other"),
    [("tree/inner", "tree/inner"), ("tree", "tree/inner"), ("tree/inner", "tree")],
)
def test_exclusive_and_shared(
    data: Client, first: str, second: str, status: int, path: str, other: str
) -> None:
    lock(data, f"home/{path}", first)
    answer = data("LOCK", dav(f"home/{other}"), lock_info(second))
    assert answer.status == status
    if status == 423:
        assert condition_of(answer) == "no-conflicting-lock"


def test_one_of_several_shared_locks_is_enough(data: Client) -> None:
    tokens = [lock(data, "home/file", "shared") for _ in range(2)]
    assert change(data, "PUT", "home/file").status == 423
    for token in tokens:
        assert change(data, "PUT", "home/file", token).status == 200
        assert data("UNLOCK", dav("home/file"), headers={"Lock-Token": token}).status == 204
    assert change(data, "PUT", "home/file").status == 200


def test_a_place_is_locked_under_all_its_names(data: Client, home: Path) -> None:
    """The storage area is in the home directory, too, and links lead to folders."""
    (home / "storage/data/x").write_text("old")
    (home / "link").symlink_to("storage/data")
    lock(data, "storage/data/x")
    for path in ("home/storage/data/x", "home/link/x", "storage/data/x"):
        assert change(data, "PUT", path).status == 423
    assert change(data, "DELETE", "home/storage").status in (409, 423)


# Names without a file


def test_a_new_name_is_locked_with_an_empty_file(data: Client, home: Path) -> None:
    token = lock(data, "home/new")
    assert (home / "new").read_text() == ""
    assert change(data, "PUT", "home/new").status == 423
    assert change(data, "PUT", "home/new", token).status == 200
    assert data("LOCK", dav("home/none/new"), lock_info()).status == 409
    assert data("LOCK", dav("home/new2"), lock_info(), {"If-Match": "*"}).status == 412
    assert not (home / "new2").exists()


def test_no_lock_remains_if_the_file_cannot_be_created(
    data: Client, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "")

    monkeypatch.setattr("portal.node.file_server.at.create", refuse)
    assert data("LOCK", dav("home/new"), lock_info()).status == 403
    assert not server.files.locks


# The end of a lock


def test_locks_end_with_what_they_are_on(data: Client, server: FileServer) -> None:
    token = lock(data, "home/tree/deep/inner")
    tagged = {"If": f"<{dav('home/tree/deep/inner')}> ({token})"}
    assert change(data, "MOVE", "home/tree", **to("home/moved"), **tagged).status == 201
    assert not server.files.locks
    token = lock(data, "home/file")
    assert change(data, "DELETE", "home/file", token).status == 204
    assert not server.files.locks
    token = lock(data, "home/moved/inner")
    tagged = {"If": f"<{dav('home/moved/inner')}> ({token})"}
    assert change(data, "COPY", "home/other", **to("home/moved"), **tagged).status == 204
    assert not server.files.locks


def test_what_was_deleted_at_another_door_is_not_locked(data: Client, home: Path) -> None:
    lock(data, "home/file")
    (home / "file").unlink()
    assert change(data, "PUT", "home/file").status == 201
    lock(data, "home/tree")
    (home / "tree").rename(home / "moved")
    assert lock(data, "home/tree")


def test_time_is_bounded_and_can_be_given_again(
    data: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(answer: Answer) -> str | None:
        return ET.fromstring(answer.body).findtext(f".//{DAV}timeout")

    for asked, granted in (
        ("Second-600", 600),
        ("Second-1", locks.LEAST_SECONDS),
        ("Second-4100000000", locks.MOST_SECONDS),
        ("Infinite, Second-600", locks.MOST_SECONDS),
        ("nonsense", locks.MOST_SECONDS),
    ):
        answer = data("LOCK", dav("home/file"), lock_info(), {"Timeout": asked})
        assert seconds(answer) == f"Second-{granted}"
        token = answer.headers["Lock-Token"]
        again = {"If": f"({token})", "Timeout": "Second-100"}
        answer = data("LOCK", dav("home/file"), None, again)
        assert (answer.status, seconds(answer)) == (200, "Second-100")
        assert "Lock-Token" not in answer.headers
        data("UNLOCK", dav("home/file"), headers={"Lock-Token": token})
    token = lock(data, "home/file", Timeout="Second-100")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 99)
    assert change(data, "PUT", "home/file").status == 423
    monkeypatch.setattr(time, "monotonic", lambda: now + 101)
    assert change(data, "PUT", "home/file", token).status == 412
    assert change(data, "PUT", "home/file").status == 200


def test_a_program_learns_that_its_lock_is_gone(data: Client, home: Path) -> None:
    """The file server was started again."""
    token = "<opaquelocktoken:11111111-1111-1111-1111-111111111111>"
    assert change(data, "PUT", "home/file", token).status == 412
    assert data("LOCK", dav("home/file"), None, {"If": f"({token})"}).status == 412
    answer = data("UNLOCK", dav("home/file"), headers={"Lock-Token": token})
    assert (answer.status, condition_of(answer)) == (409, "lock-token-matches-request-uri")
    assert (home / "file").read_text() == "old"


def test_there_are_not_too_many(data: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "MOST", 2)
    tokens = [lock(data, "home/file", "shared") for _ in range(2)]
    assert data("LOCK", dav("home/file"), lock_info("shared")).status == 503
    data("UNLOCK", dav("home/file"), headers={"Lock-Token": tokens[0]})
    lock(data, "home/file", "shared")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 400),
        (b"", {"If": "(<urn:a>) (<urn:b>)"}, 400),
        (b"<x/>", {}, 400),
        (lock_info("strange"), {}, 400),
        (lock_info().replace(b"write", b"read"), {}, 400),
        (lock_info().replace(b"<D:exclusive/>", b"<D:exclusive/><D:shared/>"), {}, 400),
        (lock_info(), {"Depth": "1"}, 400),
        (lock_info(), {"If": "nonsense"}, 400),
        (lock_info(owner=f"<D:owner>{'x' * 10_000}</D:owner>"), {}, 413),
    ],
)
def test_wrong_requests(
    data: Client, server: FileServer, body: bytes, headers: dict[str, str], status: int
) -> None:
    assert data("LOCK", dav("home/file"), body, headers).status == status
    assert not server.files.locks
    for token in ("", "none", "urn:a"):
        answer = data("UNLOCK", dav("home/file"), headers={"Lock-Token": token})
        assert answer.status == 400


# Together with other conditions


def test_a_lock_taken_while_a_file_is_sent(
    data: Client, client: Callable[[str], Client], home: Path
) -> None:
    data.connection.putrequest("PUT", dav("home/file"))
    for name, value in {"Content-Length": "4", "Expect": "100-continue"}.items():
        data.connection.putheader(name, value)
    data.connection.endheaders(b"mi")
    assert data.connection.sock is not None
    assert data.connection.sock.recv(100).startswith(b"HTTP/1.1 100")
    lock(client("files"), "home/file")
    data.connection.send(b"ne")
    answer = data.connection.getresponse()
    answer.read()
    assert (answer.status, (home / "file").read_text()) == (423, "old")


def test_if_and_if_match_both_count(data: Client) -> None:
    token = lock(data, "home/file")
    tag = data("HEAD", dav("home/file")).headers["ETag"]
    assert change(data, "PUT", "home/file", token, **{"If-Match": '"wrong"'}).status == 412
    assert change(data, "PUT", "home/file", If=f'({token} ["wrong"])').status == 412
    assert change(data, "PUT", "home/file", If=f"({token} [{tag}])").status == 200


def test_who_may_only_read_mounts_read_only(client: Callable[[str], Client]) -> None:
    reader = client("read")
    answer = reader("OPTIONS", dav("home/file"))
    assert answer.headers["DAV"] == "1"
    assert answer.headers["Allow"] == "OPTIONS, PROPFIND, GET, HEAD"
    assert reader("LOCK", dav("home/file"), lock_info()).status == 403


# The file server's life


def test_the_file_server_waits_for_locks_but_not_forever(
    data: Client, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(data, "home/file")
    ended = threading.Event()
    deadline = time.monotonic() + 5
    while server._busy:  # the answer arrives before the end is noted
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with monkeypatch.context() as patch:
        patch.setattr(server, "shutdown", ended.set)
        server._used = time.monotonic() - 3600
        assert not ended.wait(0.2)
        (held,) = server.files.locks._locks.values()
        assert held.expires <= time.monotonic() + locks.MOST_SECONDS
        held.expires = time.monotonic()
        assert ended.wait(5)

"""File systems that do not answer."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from portal.node.file_server import deadlines
from portal.node.file_server.deadlines import Deadlines
from portal.node.file_server.errors import Refused
from portal.node.file_server.server import FileServer
from tests.unit.node.file_server.conftest import Client


def test_a_call_gives_its_result_or_its_error() -> None:
    calls = Deadlines()
    assert calls.call("home", lambda: 5) == 5
    with pytest.raises(FileNotFoundError):
        calls.call("home", lambda: os.stat("/none"))


def test_after_some_late_calls_further_ones_are_refused_at_once_until_one_returns() -> None:
    calls, release = Deadlines(most=2), threading.Event()
    given: list[int] = []

    def hang() -> int:
        release.wait(20)
        return 7

    for _ in range(2):
        with pytest.raises(Refused, match="does not answer"):
            calls.call("home", hang, 0.05, given.append)
    start = time.monotonic()
    with pytest.raises(Refused) as found:
        calls.call("home", hang, 5.0)
    assert time.monotonic() - start < 1
    assert (found.value.status, found.value.code) == (503, "away")
    assert calls.call("scratch", lambda: 1) == 1
    assert (calls.is_late("home"), calls.is_late("scratch")) == (True, False)
    release.set()
    deadline = time.monotonic() + 5
    while len(given) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert given == [7, 7]  # so that descriptors can be closed
    assert calls.call("home", lambda: 2) == 2


def test_calls_that_are_not_late_are_waited_for() -> None:
    calls = Deadlines(most=1)
    other = threading.Thread(target=calls.call, args=("home", lambda: time.sleep(0.2)))
    other.start()
    time.sleep(0.05)
    assert calls.call("home", lambda: 3) == 3
    other.join()


def test_a_storage_area_that_hangs_is_answered_and_others_go_on(
    control: Client, data: Client, server: FileServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seam is where a walk opens its root, as on a mount whose server is away."""
    from portal.node.file_server import at  # noqa: PLC0415

    (home / "a").write_text("a")
    others = set(threading.enumerate())
    open_trusted, release = at.open_trusted, threading.Event()

    def hang(path: str, folder: int | None = None) -> int:
        if path == server.files.roots.get("storage").path:
            release.wait(30)
        return open_trusted(path, folder)

    monkeypatch.setattr(at, "open_trusted", hang)
    monkeypatch.setattr(deadlines.Deadlines.call, "__defaults__", (0.1, None))
    monkeypatch.setattr(server.files.deadlines, "_most", 3)
    for client, method, path in (
        (control, "GET", "/v1/list/storage"),
        (control, "GET", "/v1/entry/storage/data"),
        (control, "GET", "/v1/search/storage?text=x"),
        (control, "GET", "/v1/usage/storage"),
        (control, "POST", "/v1/folder/storage/new"),
        (data, "GET", "/data/files/storage/data/x"),
        (data, "PUT", "/data/files/storage/data/x"),
        (data, "GET", "/data/archive/storage/data"),
        (data, "PROPFIND", "/data/dav/storage/data"),
        (control, "GET", "/v1/shares/storage/data"),
    ):
        start = time.monotonic()
        found = client(method, path)
        assert (found.status, found.json["code"]) == (503, "away"), path
        assert time.monotonic() - start < 2, path
    started = set(threading.enumerate()) - others
    late = [thread for thread in started if "_run" in thread.name]
    assert len(late) == 3 + 1  # searches have places of their own
    assert control("GET", "/v1/list/home").status == 200
    body = {"kind": "copy", "items": ["home/a"], "to": "home", "on_conflict": "rename"}
    assert control("POST", "/v1/operations", body).json["state"] == "done"
    assert control("POST", "/v1/rename/home/a%20(2)", {"name": "b"}).status == 200
    assert data("GET", "/data/files/home/a").body == b"a"
    release.set()
    deadline = time.monotonic() + 5
    while control("GET", "/v1/list/storage").status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)

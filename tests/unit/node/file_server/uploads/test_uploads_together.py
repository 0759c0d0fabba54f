"""Several uploads at once, lines that break, and what is cleaned up."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from portal.node.file_server.server import FileServer
from portal.node.file_server.uploads import writers
from tests.unit.node.file_server.conftest import Client
from tests.unit.node.file_server.uploads.conftest import CHUNK, Tus, metadata, parts, problem


def begin_chunk(client: Client, url: str, length: int, data: bytes) -> None:
    """Send a chunk's beginning, and leave the connection open."""
    line = client.connection
    line.putrequest("PATCH", url)
    for name, value in {**CHUNK, "Upload-Offset": "0", "Content-Length": str(length)}.items():
        line.putheader(name, value)
    line.endheaders()
    line.send(data)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_bytes(folder: Path, size: int) -> None:
    wait_for(lambda: parts(folder)[0].stat().st_size >= size)


def test_two_who_write_to_the_same_upload(
    client: Callable[[str], Client], home: Path, tus: Tus
) -> None:
    url = tus.begin("home/new/a", 100)
    first = client("files")
    begin_chunk(first, url, 100, b"x" * 40)
    wait_for_bytes(home / "new", 40)
    assert problem(tus.patch(url, 40, b"y" * 60)) == (423, "locked")
    assert tus.head(url).status == 423
    first.connection.send(b"x" * 60)
    assert first.connection.getresponse().status == 204
    assert (home / "new/a").read_bytes() == b"x" * 100


def test_a_line_that_is_dead_makes_room(
    client: Callable[[str], Client], home: Path, tus: Tus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "STALLED", 0.2)
    url = tus.begin("home/new/a", 100)
    begin_chunk(client("files"), url, 100, b"x" * 40)
    wait_for_bytes(home / "new", 40)
    time.sleep(0.3)
    assert tus.head(url).headers["Upload-Offset"] == "40"
    assert tus.patch(url, 40, b"y" * 60).status == 204


def test_an_upload_is_ended_while_data_arrive(
    client: Callable[[str], Client], home: Path, tus: Tus
) -> None:
    url = tus.begin("home/new/a", 100)
    begin_chunk(client("files"), url, 100, b"x" * 40)
    wait_for_bytes(home / "new", 40)
    assert tus.delete(url).status == 204
    assert list((home / "new").iterdir()) == []


def test_a_line_that_breaks_keeps_what_has_arrived(
    client: Callable[[str], Client], home: Path, tus: Tus
) -> None:
    url = tus.begin("home/new/a", 100)
    first = client("files")
    begin_chunk(first, url, 100, b"x" * 40)
    wait_for_bytes(home / "new", 40)
    first.connection.close()
    deadline = time.monotonic() + 5
    while (found := tus.head(url)).status == 423:
        assert time.monotonic() < deadline
    assert found.headers["Upload-Offset"] == "40"


def test_twenty_at_once(client: Callable[[str], Client], home: Path) -> None:
    bodies = [os.urandom(300_000) for _ in range(20)]

    def upload(number: int) -> None:
        tus = Tus(client("files"))
        body = bodies[number]
        url = tus.begin(f"home/many/{number}", len(body), sha256=hashlib.sha256(body).hexdigest())
        for offset in range(0, len(body), 100_000):
            assert tus.patch(url, offset, body[offset : offset + 100_000]).status == 204

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(upload, range(20)))
    for number, body in enumerate(bodies):
        assert (home / "many" / str(number)).read_bytes() == body
    assert parts(home) == []


def test_who_is_refused_early_sees_the_answer(
    client: Callable[[str], Client], home: Path, tus: Tus
) -> None:
    url = tus.begin("home/new/a", 20_000_000)
    first = client("files")
    begin_chunk(first, url, 20_000_000, b"x")
    wait_for_bytes(home / "new", 1)
    other = client("files")
    begin_chunk(other, url, 20_000_000, b"x" * 3_000_000)
    assert other.connection.getresponse().status == 423


def test_what_nobody_continues_is_removed(server: FileServer, home: Path, tus: Tus) -> None:
    url = tus.begin("home/new/old", 10)
    (old,) = parts(home / "new")
    tus.begin("home/new/young", 10)
    os.utime(old, (time.time() - 49 * 3600,) * 2)
    assert server.files.uploads.clean() == 1
    assert not old.exists()
    assert tus.head(url).status == 404
    assert len(parts(home / "new")) == 1


def test_the_command_that_cleans_up(home: Path, tus: Tus) -> None:
    tus.begin("home/new/a", 10)
    tus.begin("home/new/b", 10)
    os.utime(parts(home / "new")[0], (0, 0))
    order = {"id": "0", "certificate": "", "client_ca": "", "roots": {"home": str(home)}}
    done = subprocess.run(
        [sys.executable, "-c", "from portal.node.file_server.daemon import clean; clean()"],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.lstrip("\0")) == {"left": 1}
    assert len(parts(home / "new")) == 1


def test_a_home_without_room_has_its_records_on_the_host(
    home: Path, tus: Tus, control: Client, tmp_path: Path
) -> None:
    (home / ".slipway").write_text("no folder can be made here")
    url = tus.begin("home/new/a", 10)
    assert len(list((tmp_path / "private").rglob("*.json"))) == 1
    assert len(control("GET", "/v1/uploads").json["uploads"]) == 1
    assert tus.patch(url, 0, b"x" * 10).status == 204
    assert (home / "new/a").read_bytes() == b"x" * 10


def test_a_full_file_system_says_so_at_once(small_disk: Path, tus: Tus, data: Client) -> None:
    assert problem(tus.create("storage/data/large", 5_000_000)) == (507, "full")
    first = tus.begin("storage/data/first", 3_000_000)
    assert problem(tus.create("storage/data/second", 3_000_000)) == (507, "full")
    headers = {
        **CHUNK,
        "Upload-Length": "3000000",
        "Upload-Metadata": metadata(path="storage/data/whole"),
    }
    assert problem(data("POST", "/data/uploads/", b"x" * 3_000_000, headers)) == (507, "full")
    assert len(list(small_disk.iterdir())) == 1
    assert tus.patch(first, 0, b"x" * 3_000_000).status == 204
    assert [path.name for path in small_disk.iterdir()] == ["first"]


def test_a_large_put_that_is_killed_is_cleaned_up(
    server: FileServer, client: Callable[[str], Client], control: Client, home: Path
) -> None:
    line = client("files").connection
    line.putrequest("PUT", "/data/files/home/storage/data/large")
    line.putheader("Content-Length", "9000000")
    line.endheaders()
    line.send(b"x" * 100_000)
    wait_for(lambda: len(parts(home / "storage")) == 1)
    (part,) = parts(home / "storage")
    wait_for(lambda: part.stat().st_size == 100_000)
    (record,) = (home / ".slipway/files/uploads").iterdir()
    kept = record.read_bytes()
    assert control("GET", "/v1/uploads").json == {"uploads": []}
    assert control("DELETE", f"/v1/uploads/{record.stem}").status == 404
    line.close()
    wait_for(lambda: not record.exists())
    assert parts(home / "storage") == []
    record.write_bytes(kept)  # as after a kill
    part.write_bytes(b"x")
    assert server.files.uploads.clean() == 1
    os.utime(part, (0, 0))
    assert server.files.uploads.clean() == 0
    assert parts(home / "storage") == []

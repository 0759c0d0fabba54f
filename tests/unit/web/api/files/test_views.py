"""Operations on files over the REST API."""

from __future__ import annotations

import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from portal.config.files import FileSettings
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import Api, make_settings


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def host() -> Iterator[str]:
    """A web server."""
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def world(tmp_path: Path, host: str) -> World:
    """A site that permits fetching files from that server."""
    files = FileSettings(fetch_hosts=(host,), fetch_http=True)
    return make_world(make_settings(tmp_path).model_copy(update={"files": files}))


@pytest.fixture
def home(world: World) -> Path:
    return world.file_servers.home("alice")


@pytest.fixture
def operate(api: Callable[[str], Api]) -> Callable[..., dict[str, Any]]:
    """Do an operation to its end; a refusal is returned at once."""
    program = api("alice")

    def run(**order: Any) -> dict[str, Any]:
        answer = program("POST", "/files/operations", json=order)
        found: Any = answer.json
        deadline = time.monotonic() + 10
        while answer.status_code < 300 and found["state"] in ("waiting", "running"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
            found = program("GET", f"/files/operations/{found['id']}").json
        return {"status": answer.status_code, **found}

    return run


def test_an_archive_is_unpacked(home: Path, operate: Callable[..., dict[str, Any]]) -> None:
    with zipfile.ZipFile(home / "a.zip", "w") as archive:
        archive.writestr("x", "1")
    found = operate(kind="unpack", items=["home/a.zip"])
    assert (found["state"], found["files"], found["detail"]) == ("done", 1, "1 file unpacked.")
    assert (home / "a/x").read_text() == "1"
    assert operate(kind="unpack", items=["home/a.zip"])["status"] == 409
    assert operate(kind="unpack")["status"] == 422
    assert operate(kind="unpack", items=["home/a"])["status"] == 409


def test_a_file_is_fetched(home: Path, host: str, operate: Callable[..., dict[str, Any]]) -> None:
    found = operate(kind="fetch", url=f"http://{host}/x.txt", to="home/storage")
    assert (found["state"], found["bytes"]) == ("done", 5)
    assert (home / "storage/x.txt").read_text() == "hello"
    url = f"http://{host}/y.txt"
    found = operate(kind="fetch", url=url, to="home", name="z", sha256="0" * 64)
    assert found["state"] == "failed"
    assert "does not have this SHA-256" in found["detail"]
    assert not (home / "z").exists()
    found = operate(kind="fetch", url="https://elsewhere.example/x", to="home")
    assert found["status"] == 403
    assert host in found["detail"]
    assert operate(kind="fetch", url=url, to="home", sha256="1")["status"] == 422

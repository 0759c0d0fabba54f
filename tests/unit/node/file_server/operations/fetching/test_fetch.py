"""Files from a web server that cuts connections, redirects, changes files, and lies."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.errors import Refused
from portal.node.file_server.operations.fetch_rules import FetchRules
from portal.node.file_server.operations.fetching import connecting, fetch
from portal.node.file_server.operations.manager import Operations
from tests.unit.node.file_server.operations.conftest import operations_of
from tests.unit.node.file_server.uploads.conftest import small_disk

__all__ = ["small_disk"]
BODY = os.urandom(1_500_000)
MODIFIED = "Fri, 14 Jul 2017 02:40:00 GMT"


class Web(ThreadingHTTPServer):
    """A web server whose answers a test decides; the paths and headers of requests are kept."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Callable[[_Handler], None] = _Handler.whole
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.body, self.tag = BODY, '"1"'
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def url(self, path: str = "data/file.bin") -> str:
        return f"http://{self.host}/{path}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Web

    def do_GET(self) -> None:
        self.server.requests.append((self.path, dict(self.headers)))
        self.close_connection = True
        self.server.answer(self)

    def do_CONNECT(self) -> None:
        self.server.requests.append((self.path, dict(self.headers)))
        self.close_connection = True
        self.head(403)

    def head(self, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def whole(self) -> None:
        self.head(Content_Length=str(len(self.server.body)), Last_Modified=MODIFIED)
        self.wfile.write(self.server.body)

    def ranged(self, most: int = 500_000) -> None:
        """Answer as a server that knows ranges, and end after so many bytes."""
        body, tag = self.server.body, self.server.tag
        start = int(self.headers.get("Range", "bytes=0-")[6:].rstrip("-"))
        if self.headers.get("If-Range", tag) != tag:
            start = 0
        left = len(body) - start
        more = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
        self.head(206 if start else 200, Content_Length=str(left), ETag=tag, **more)
        self.wfile.write(body[start : start + most])

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def web() -> Iterator[Web]:
    running = Web()
    yield running
    running.shutdown()
    running.server_close()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PAUSES", (0.0,))
    monkeypatch.setattr(fetch, "LONGEST_PAUSE", 0.0)


@pytest.fixture
def operations(home: Path, web: Web) -> Operations:
    return operations_of({"home": str(home)}, FetchRules((web.host,), http=True))


Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(operations: Operations, web: Web) -> Run:
    def start(url: str = "", to: str = "home/storage", **more: str) -> dict[str, Any]:
        order = {"kind": "fetch", "url": url or web.url(), "to": to, **more}
        found = operations.start(order)
        assert found.over.wait(30), found.as_json()
        return found.as_json()

    return start


def names(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "storage").iterdir() if path.name != "data")


def failed(found: dict[str, Any], home: Path, words: str) -> None:
    assert (found["state"], found["files"]) == ("failed", 0)
    assert words in found["detail"]
    assert names(home) == []


def test_a_file(run: Run, web: Web, home: Path) -> None:
    found = run(web.url("data/my%20file.bin?x=1"))
    assert (found["state"], found["detail"]) == ("done", "1 file fetched.")
    assert (found["items"], found["to"]) == (["home/storage/my%20file.bin"], "home/storage")
    assert (found["bytes"], found["bytes_total"]) == (len(BODY), len(BODY))
    assert found["url"] == web.url("data/my%20file.bin?x=1")
    target = home / "storage/my file.bin"
    assert target.read_bytes() == BODY
    assert target.stat().st_mtime == 1_500_000_000
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask
    ((path, headers),) = web.requests
    assert path == "/data/my%20file.bin?x=1"
    assert "Range" not in headers
    assert headers["Accept-Encoding"] == "identity"
    assert names(home) == ["my file.bin"]


def test_a_name_and_a_checksum_of_the_user(run: Run, web: Web, home: Path) -> None:
    digest = hashlib.sha256(BODY).hexdigest()
    assert run(web.url("x/"), name="größe.bin", sha256=f" {digest.upper()} ")["state"] == "done"
    assert names(home) == ["größe.bin"]
    found = run(web.url("y"), sha256="0" * 64)
    assert (found["state"], names(home)) == ("failed", ["größe.bin"])
    assert "does not have this SHA-256" in found["detail"]


def test_a_cut_connection_goes_on(run: Run, web: Web, home: Path) -> None:
    web.answer = _Handler.ranged
    digest = hashlib.sha256(BODY).hexdigest()
    assert run(sha256=digest)["state"] == "done"
    assert (home / "storage/file.bin").read_bytes() == BODY
    ranges = [headers.get("Range") for _, headers in web.requests]
    assert ranges == [None, "bytes=500000-", "bytes=1000000-"]
    assert web.requests[1][1]["If-Range"] == '"1"'


def test_a_file_that_changes_meanwhile_begins_again(run: Run, web: Web, home: Path) -> None:
    def change(handler: _Handler) -> None:
        if len(web.requests) == 2:
            web.body, web.tag = os.urandom(700_000), '"2"'
        handler.ranged()

    web.answer = change
    found = run()
    assert (found["state"], found["bytes"]) == ("done", 700_000)
    assert (home / "storage/file.bin").read_bytes() == web.body


@pytest.mark.parametrize("tag", ["", 'W/"1"'])
def test_without_a_strong_validator_it_begins_again(
    run: Run, web: Web, home: Path, tag: str
) -> None:
    def answer(handler: _Handler) -> None:
        handler.head(Content_Length=str(len(BODY)), ETag=tag)
        handler.wfile.write(BODY[: len(BODY) // (3 - len(web.requests))])

    web.answer = answer
    assert run()["state"] == "done"
    assert (home / "storage/file.bin").read_bytes() == BODY
    assert all("Range" not in headers for _, headers in web.requests)


def test_another_part_than_was_requested(run: Run, web: Web, home: Path) -> None:
    def answer(handler: _Handler) -> None:
        if len(web.requests) == 2:
            handler.head(206, Content_Length="10", Content_Range="bytes 0-9/1500000")
            handler.wfile.write(b"x" * 10)
        else:
            handler.ranged(500_000 if len(web.requests) == 1 else len(BODY))

    web.answer = answer
    assert run()["state"] == "done"
    assert (home / "storage/file.bin").read_bytes() == BODY


def test_the_number_of_attempts_is_limited(run: Run, web: Web, home: Path) -> None:
    web.answer = lambda handler: handler.head(503, Retry_After="1", Content_Length="0")
    failed(run(), home, "The server says 503 Service Unavailable.")
    assert len(web.requests) == fetch.MOST_FAILURES
    web.requests.clear()
    web.answer = lambda handler: handler.ranged(1)
    failed(run(), home, "The connection ended too often.")
    assert len(web.requests) == fetch.MOST_ATTEMPTS


@pytest.mark.parametrize("status", [401, 403, 404, 410, 204, 301])
def test_what_the_server_refuses(run: Run, web: Web, home: Path, status: int) -> None:
    web.answer = lambda handler: handler.head(status, Content_Length="0")
    failed(run(), home, f"The server says {status}")
    assert len(web.requests) == 1


def test_chunks(run: Run, web: Web, home: Path) -> None:
    def answer(handler: _Handler) -> None:
        handler.head(Transfer_Encoding="chunked")
        handler.wfile.write(b"5\r\nhello\r\n" + b"0\r\n\r\n" * (len(web.requests) > 1))

    web.answer = answer
    assert run()["state"] == "done"
    assert (home / "storage/file.bin").read_bytes() == b"hello"
    assert len(web.requests) == 2  # the first one had no end


def test_an_unknown_length_needs_a_checksum(run: Run, web: Web, home: Path) -> None:
    def answer(handler: _Handler) -> None:
        handler.head(Connection="close")
        handler.wfile.write(b"hello")

    web.answer = answer
    failed(run(), home, "could be cut off unnoticed")
    assert run(sha256=hashlib.sha256(b"hello").hexdigest())["state"] == "done"


def redirecting(place: str, status: int = 302) -> Callable[[_Handler], None]:
    def answer(handler: _Handler) -> None:
        if handler.path == "/data/file.bin":
            handler.head(status, Location=place, Content_Length="0")
        else:
            handler.whole()

    return answer


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects(run: Run, web: Web, home: Path, status: int) -> None:
    web.answer = redirecting("../other?token=1", status)
    assert run()["state"] == "done"
    assert [path for path, _ in web.requests] == ["/data/file.bin", "/other?token=1"]
    assert names(home) == ["file.bin"]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("http://127.0.0.1:1/x", "does not permit fetching files from 127.0.0.1:1."),
        ("http://localhost/x", "does not permit fetching files from localhost:80."),
        ("file:///etc/passwd", "This is not the URL of a file."),
        ("/data/file.bin", "without an end"),
    ],
)
def test_redirects_that_lead_elsewhere(
    run: Run, web: Web, home: Path, place: str, words: str
) -> None:
    web.answer = redirecting(place)
    failed(run(), home, words)


def test_private_addresses_only_by_name(home: Path, web: Web) -> None:
    port = web.server_address[1]
    for entry in (f"*:{port}", f"*.0.0.1:{port}"):
        operations = operations_of({"home": str(home)}, FetchRules((entry,), http=True))
        found = operations.start({"kind": "fetch", "url": web.url(), "to": "home/storage"})
        assert found.over.wait(10)
        failed(found.as_json(), home, "which is not a public one")
    assert web.requests == []


def test_the_environment_has_no_say(run: Run, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert run()["state"] == "done"


def test_a_proxy_of_the_site(home: Path, web: Web) -> None:
    rules = FetchRules(("*",), http=True, proxy=f"http://{web.host}")
    operations = operations_of({"home": str(home)}, rules)
    order = {"kind": "fetch", "url": "http://data.example.org/x", "to": "home/storage"}
    found = operations.start(order)
    assert found.over.wait(10)
    assert found.state == "done"
    ((path, headers),) = web.requests
    assert (path, headers["Host"]) == ("http://data.example.org/x", "data.example.org")
    web.requests.clear()
    found = operations.start({**order, "url": "https://data.example.org/y"})
    assert found.over.wait(10)
    assert "Tunnel connection failed: 403" in found.detail
    assert [path for path, _ in web.requests] == ["data.example.org:443"] * fetch.MOST_FAILURES


def test_no_answer(run: Run, web: Web, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "SECONDS", 0.1)
    web.answer = lambda handler: time.sleep(1)
    failed(run(), home, "The connection failed (timed out).")


def test_a_host_that_does_not_exist(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    operations = operations_of({"home": str(home)}, FetchRules(("no.example",)))
    order = {"kind": "fetch", "url": "https://no.example/x", "to": "home/storage"}
    found = operations.start(order)
    assert found.over.wait(10)
    failed(found.as_json(), home, "There is no host of this name.")


def test_a_name_that_exists(run: Run, home: Path) -> None:
    (home / "storage/file.bin").write_text("old")
    (home / "storage/file.bin").chmod(0o640)
    with pytest.raises(Refused) as found:
        run()
    assert (found.value.code, found.value.field) == ("exists", "on_conflict")
    assert run(on_conflict="skip")["skipped"] == 1
    assert run(on_conflict="rename")["state"] == "done"
    assert names(home) == ["file (2).bin", "file.bin"]
    assert (home / "storage/file.bin").read_text() == "old"
    assert run(on_conflict="replace")["state"] == "done"
    assert (home / "storage/file.bin").read_bytes() == BODY
    assert (home / "storage/file.bin").stat().st_mode & 0o777 == 0o640
    (home / "storage/folder").mkdir()
    found_json = run(name="folder", on_conflict="replace")
    assert (found_json["state"], (home / "storage/folder").is_dir()) == ("failed", True)


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"url": ""}, 422, "url"),
        ({"url": 5}, 422, "url"),
        ({"url": "https://evil.example/x"}, 403, "url"),
        ({"sha256": "12"}, 422, "sha256"),
        ({"name": "a/b"}, 422, "name"),
        ({"name": ".."}, 422, "name"),
        ({"to": ""}, 422, "to"),
        ({"to": "home/nothing"}, 404, "to"),
        ({"url": "http://HOST/"}, 422, "name"),
        ({"url": "http://HOST/a%2Fb"}, 422, "name"),
    ],
)
def test_a_wrong_order_names_the_field(
    operations: Operations, web: Web, change: dict[str, Any], status: int, field: str
) -> None:
    url = change.get("url")
    if isinstance(url, str):
        change = {**change, "url": url.replace("HOST", web.host)}
    with pytest.raises(Refused) as found:
        operations.start({"kind": "fetch", "url": web.url(), "to": "home/storage", **change})
    assert (found.value.status, found.value.field) == (status, field)
    assert web.requests == []


def test_more_than_is_free(small_disk: Path, run: Run, web: Web) -> None:
    web.answer = lambda handler: handler.head(Content_Length="5000000")
    found = run(to="home/storage/data")
    assert (found["state"], list(small_disk.iterdir())) == ("failed", [])
    assert "bytes that are free" in found["detail"]
    assert len(web.requests) == 1

    def endless(handler: _Handler) -> None:
        handler.head(Transfer_Encoding="chunked")
        for _ in range(100):
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(BODY), BODY))

    web.answer = endless
    assert run(to="home/storage/data")["state"] == "failed"
    assert list(small_disk.iterdir()) == []


def test_it_can_be_cancelled_and_leaves_nothing(
    operations: Operations, web: Web, home: Path
) -> None:
    going = threading.Event()

    def answer(handler: _Handler) -> None:
        handler.head(Content_Length=str(len(BODY)))
        handler.wfile.write(BODY[:400_000])
        going.wait(10)

    web.answer = answer
    found = operations.start({"kind": "fetch", "url": web.url(), "to": "home/storage"})
    assert (found.state, len(names(home))) == ("running", 1)
    operations.cancel(found.id)
    going.set()
    assert found.over.wait(10)
    assert (found.state, names(home)) == ("cancelled", [])


def test_a_kill_leaves_nothing(home: Path, web: Web) -> None:
    def answer(handler: _Handler) -> None:
        handler.head(Content_Length=str(len(BODY)))
        handler.wfile.write(BODY[:400_000])
        time.sleep(20)

    web.answer = answer
    child = os.fork()
    if not child:
        rules = FetchRules((web.host,), http=True)
        order = {"kind": "fetch", "url": web.url(), "to": "home/storage"}
        operations_of({"home": str(home)}, rules).start(order).over.wait(20)
        os._exit(0)
    deadline = time.monotonic() + 10
    while not names(home):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    operations = operations_of({"home": str(home)})
    while names(home):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (found,) = operations.list()
    assert (found["state"], found["url"]) == ("interrupted", web.url())


def certificate(folder: Path) -> Path:
    """A certificate for localhost, with its key."""
    path = folder / "server.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", str(path), "-out", str(folder / "cert.pem")]
    words = [*command.split(), "-addext", "subjectAltName=DNS:localhost", *files]
    subprocess.run(words, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + (folder / "cert.pem").read_bytes())
    return path


def test_https_and_its_certificate(
    home: Path, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path))
    web.socket = context.wrap_socket(web.socket, server_side=True)
    port = web.server_address[1]
    operations = operations_of({"home": str(home)}, FetchRules((f"localhost:{port}",)))
    order = {"kind": "fetch", "url": f"https://localhost:{port}/x", "to": "home/storage"}
    found = operations.start(order)
    assert found.over.wait(20)
    failed(found.as_json(), home, "certificate is not accepted")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    found = operations.start(order)
    assert found.over.wait(20)
    assert (found.state, names(home)) == ("done", ["x"])

"""Long responses leave gunicorn's threads alone."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import pytest

from portal.web.http import delivery
from portal.web.http.delivery import SHORT, Delivery
from portal.web.http.wsgi_types import Environ, StartResponse

LONG = bytes(range(256)) * 8192
"""2 MB: more than a socket holds."""


class File(io.BytesIO):
    """A response's file, iterated in pieces as gunicorn's wrapper does."""

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: self.read(8192), b"")


def app(body: Iterable[bytes], length: int) -> Delivery:
    """An application with one response."""

    def respond(_environ: Environ, start: StartResponse) -> Iterable[bytes]:
        start("200 OK", [("Content-Length", str(length))])
        return body

    return Delivery(respond)


def serve(delivering: Delivery) -> tuple[socket.socket, socket.socket, list[bytes]]:
    """HAProxy's end, gunicorn's end, and what gunicorn sends itself."""
    client, server = socket.socketpair()
    environ: Environ = {"gunicorn.socket": server, "REQUEST_METHOD": "GET"}
    sent = list(delivering(environ, lambda *_: None))
    return client, server, sent


def wait_until_closed(file: File) -> None:
    """Wait for the sending thread, which closes the connection before the file."""
    deadline = time.monotonic() + 10
    while not file.closed:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_long_response_arrives_completely_without_gunicorn() -> None:
    file = File(LONG)
    client, server, sent = serve(app(file, len(LONG)))
    with client, server:
        assert sent == [b""]
        begun = time.monotonic()
        server.shutdown(socket.SHUT_WR)  # as gunicorn does, which then waits for HAProxy to close
        assert server.recv(1) == b""
        assert time.monotonic() - begun < 1
        with client.makefile("rb") as stream:
            assert stream.read() == LONG
        wait_until_closed(file)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_short_responses_and_heads_are_gunicorns(method: str) -> None:
    with ExitStack() as stack:
        client, server = map(stack.enter_context, socket.socketpair())
        length = SHORT if method == "GET" else len(LONG)
        environ: Environ = {"gunicorn.socket": server, "REQUEST_METHOD": method}
        assert list(app([b"x"], length)(environ, lambda *_: None)) == [b"x"]
        server.sendall(b"still open")
        assert client.recv(100) == b"still open"


def test_a_client_that_leaves_frees_the_file() -> None:
    file = File(LONG)
    client, server, _ = serve(app(file, len(LONG)))
    client.close()
    server.close()
    wait_until_closed(file)


def test_the_oldest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "AT_ONCE", 2)
    files = [File(LONG) for _ in range(3)]
    with ExitStack() as stack:
        delivering = Delivery(
            lambda _e, start: start("200 OK", [("Content-Length", str(len(LONG)))]) or files[turn]
        )
        for turn in range(3):  # noqa: B007 the response reads it
            client, server, _ = serve(delivering)
            stack.enter_context(client)
            server.close()
        assert [file.closed for file in files] == [True, False, False]
        with client.makefile("rb") as stream:
            assert stream.read() == LONG

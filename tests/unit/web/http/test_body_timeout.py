"""A dripping body does not block a thread."""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections.abc import Iterable, Iterator

import pytest

from portal.web.http.body_timeout import READ, WHOLE, BodyTimeout
from portal.web.http.wsgi_types import Environ, StartResponse


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection."""
    ours, theirs = socket.socketpair()
    with contextlib.closing(ours), contextlib.closing(theirs):
        yield ours, theirs


def _read_all(environ: Environ, start: StartResponse) -> Iterable[bytes]:
    """An application that reads its body as far as it arrives."""
    got = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    start("200 OK", [])
    environ["gunicorn.socket"].sendall(b"%d" % len(got))
    return [got]


def _answer(it: tuple[socket.socket, socket.socket], length: int, seconds: float) -> bytes:
    environ: Environ = {"gunicorn.socket": it[0], "CONTENT_LENGTH": str(length)}
    environ["wsgi.input"] = it[0].makefile("rb")
    app = BodyTimeout(_read_all, seconds)
    return b"".join(app(environ, lambda *_words: lambda _data: None))


def test_a_long_dripping_body_is_cut_off(pair: tuple[socket.socket, socket.socket]) -> None:
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.05):
            with contextlib.suppress(OSError):
                pair[1].sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    begun = time.monotonic()
    got = _answer(pair, WHOLE + 1, 0.4)
    over.set()
    thread.join()
    assert 0.3 < time.monotonic() - begun < 5
    assert 0 < len(got) < WHOLE
    assert pair[1].recv(100) == b"%d" % len(got), "it can still be answered"


def test_an_arriving_body_is_read_completely(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].sendall(b"x" * (WHOLE + 1))
    assert len(_answer(pair, WHOLE + 1, 5)) == WHOLE + 1
    # Nothing remains set: the connection may be reused.
    timers = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
    assert all(timer.finished.is_set() for timer in timers)


@pytest.mark.parametrize(("wanted", "told"), [(WHOLE + 1, [READ]), (WHOLE, []), (0, [])])
def test_haproxy_is_told_that_a_long_body_was_read(
    pair: tuple[socket.socket, socket.socket], wanted: int, told: list[tuple[str, str]]
) -> None:
    sent: list[tuple[str, str]] = []

    def app(environ: Environ, start: StartResponse) -> Iterable[bytes]:
        environ["wsgi.input"].read(wanted)
        start("200 OK", [])
        return []

    environ: Environ = {"gunicorn.socket": pair[0], "CONTENT_LENGTH": str(WHOLE + 1)}
    environ["wsgi.input"] = io.BytesIO(b"x" * (WHOLE + 1))
    BodyTimeout(app)(environ, lambda _status, headers: sent.extend(headers))
    assert sent == told


def test_short_bodies_and_other_servers_have_no_timeout(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    pair[1].sendall(b"12345")
    assert _answer(pair, 5, 0) == b"12345"
    app = BodyTimeout(lambda _environ, _start: [b"here"], 0)
    assert list(app({"CONTENT_LENGTH": "99999999"}, lambda *_w: lambda _d: None)) == [b"here"]
    assert list(app({"CONTENT_LENGTH": "none"}, lambda *_w: lambda _d: None)) == [b"here"]

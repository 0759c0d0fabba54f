"""Who has no certificate takes no place at a file server from those who have one."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.node.file_server.http import MOST_CONNECTIONS, Connections
from portal.node.file_server.server import FileServer
from tests.unit.node.file_server.conftest import Client


def test_silent_unverified_do_not_stop_the_portal(
    server: FileServer, client: Callable[[str], Client]
) -> None:
    """Anybody on the files host's network can connect."""
    with contextlib.ExitStack() as stack:
        place = server.socket.getsockname()
        held = [
            stack.enter_context(socket.create_connection(("127.0.0.1", place[1]), 20))
            for _ in range(MOST_CONNECTIONS + 10)
        ]
        # The server takes them one after the other: the newest are still there.
        assert client("control")("GET", "/v1/list/home").status == 200
        assert held[0].recv(1) == b""
        held[-1].settimeout(0.3)
        with pytest.raises(TimeoutError):
            held[-1].recv(1)


def test_the_ones_with_a_certificate_are_bounded_apart() -> None:
    places = Connections(most=2, unverified=1)
    with contextlib.ExitStack() as stack:

        def connect() -> tuple[socket.socket, socket.socket]:
            ours, theirs = socket.socketpair()
            stack.enter_context(ours)
            stack.enter_context(theirs)
            places.enter(ours)
            return ours, theirs

        first, second = connect(), connect()
        assert first[1].recv(1) == b"", "the one that waited longest"
        places.admit(second[0])
        third = connect()
        places.admit(third[0])
        fourth = connect()
        with pytest.raises(OSError, match="too many"):
            places.admit(fourth[0])
        places.leave(second[0])
        places.admit(connect()[0])
        assert second[1].send(b"x") == 1


def test_who_has_left_is_not_counted(server: FileServer, ca: Path) -> None:
    context = ssl.create_default_context(cafile=str(ca / "gateway_ca.pem"))
    context.check_hostname = False
    port = server.socket.getsockname()[1]
    for _ in range(3):  # without a certificate of their own
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), 20) as plain,
            context.wrap_socket(plain) as stream,
        ):
            assert stream.recv(1) == b""
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:
            thread.join(20)
    assert (server.connections._verified, server.connections._unverified) == (set(), {})

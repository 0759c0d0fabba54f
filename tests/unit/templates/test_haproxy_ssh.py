"""B3: strangers at the SSH ports of a real HAProxy keep nobody out of a session."""

from __future__ import annotations

import contextlib
import shutil
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from portal.core.apps.access import ssh_key
from portal.node.runner.apps.ssh_listener import WAITING
from tests.unit.web import front as front_module
from tests.unit.web.front import SESSION, SSH, Front, Stream, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

OWNER = "127.0.0.2"
STRANGERS = ("127.0.1.1", "127.0.1.2")
HANDFUL = tuple(f"127.0.1.{number}" for number in range(1, 9))
SLOWEST = 1.0
"""Seconds more than on a quiet portal."""


@pytest.fixture
def attacked() -> Iterator[socket.socket]:
    """A session that accepts no connection, so that each remains open."""
    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        listener.setblocking(False)
        yield listener


def reached(attacked: socket.socket) -> int:
    """How many connections have come there since the last question."""
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            attacked.accept()[0].close()
            count += 1
    return count


def others(front: Front) -> range:
    """The ports of the sessions that strangers attack."""
    return range(front.web.ssh_ports[0] + 1, front.web.ssh_ports[1] + 1)


@pytest.fixture
def front(
    tmp_path: Path, attacked: socket.socket, request: pytest.FixtureRequest
) -> Iterator[Front]:
    """A HAProxy for each test, since the limits count; before some sessions."""
    with running_front(tmp_path, **getattr(request, "param", {})) as running:
        address = f"127.0.0.1@{attacked.getsockname()[1]}"
        running.routes.add(ssh_key(str(running.web.ssh_ports[0])), running.target)
        for port in others(running):
            running.routes.add(ssh_key(str(port)), f"{address}@ssh.x{port}.slipway")
        yield running


@contextlib.contextmanager
def strangers(
    front: Front,
    count: int,
    words: bytes = b"",
    sources: Sequence[str] = STRANGERS,
    sessions: int = 1,
) -> Iterator[list[socket.socket]]:
    """So many connections of each address, which send this and nothing else, to other sessions."""
    with contextlib.ExitStack() as stack:
        held = []
        for source in sources:
            for number in range(count):
                stream = stack.enter_context(socket.socket())
                stream.settimeout(2)
                stream.bind((source, 0))
                with contextlib.suppress(OSError):
                    stream.connect(("127.0.0.1", others(front)[number % sessions]))
                    stream.sendall(words)
                    held.append(stream)
        yield held


def seconds(front: Front) -> float:
    """Until the owner has an answer of the session's server; infinite without one."""
    begun = time.monotonic()
    try:
        stream = Stream(front, front.web.ssh_ports[0], source=OWNER)
    except OSError:
        return float("inf")
    stream.close()
    return time.monotonic() - begun if stream.opened else float("inf")


def others_wait(front: Front, quiet: float) -> bool:
    """Whether the owner waits longer than usual; a busy machine delays single connections."""
    limit = max(1.5 * quiet, quiet + SLOWEST)
    return statistics.median(seconds(front) for _ in range(5)) > limit


@pytest.mark.parametrize("words", [b"", b"SSH-2.0", SSH + b"x\r\n"])
def test_two_addresses_do_not_stop_the_ssh_of_others(front: Front, words: bytes) -> None:
    quiet = statistics.median(seconds(front) for _ in range(5))
    with strangers(front, 240, words):
        assert not others_wait(front, quiet)


@pytest.mark.parametrize("front", [{"connections": 1000}], indirect=True)
def test_a_handful_of_addresses_leaves_places_to_others(front: Front) -> None:
    """However long they stay: five that each had a fifth of all places had them all."""
    quiet = statistics.median(seconds(front) for _ in range(5))
    with strangers(front, 40, SSH + b"x\r\n", HANDFUL, sessions=3), contextlib.ExitStack() as stack:
        assert not others_wait(front, quiet)
        for _ in range(4):
            stream = Stream(front, front.web.ssh_ports[0], source=OWNER)
            stack.callback(stream.close)
            assert stream.echoes()


@pytest.mark.parametrize("words", [b"", b"SSH-2.0"])
def test_who_does_not_speak_reaches_no_session_and_is_let_go(
    front: Front, attacked: socket.socket, words: bytes
) -> None:
    begun = time.monotonic()
    with strangers(front, 50, words) as held:
        for stream in held:
            stream.settimeout(60)
            with contextlib.suppress(ConnectionResetError):
                assert stream.recv(1) == b""
    assert 4 < time.monotonic() - begun < 60
    assert reached(attacked) == 0


def test_other_protocols_are_refused_at_once(front: Front, attacked: socket.socket) -> None:
    with strangers(front, 5, b"GET / HTTP/1.1\r\n") as held:
        for stream in held:
            with contextlib.suppress(ConnectionResetError):
                assert stream.recv(1) == b""
    assert reached(attacked) == 0


def test_a_version_in_two_pieces_is_understood(front: Front) -> None:
    with socket.create_connection(("127.0.0.1", front.web.ssh_ports[0]), 10) as stream:
        stream.sendall(SSH[:3])
        time.sleep(0.3)
        stream.sendall(SSH[3:] + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert stream.recv(12) == b"HTTP/1.1 200"
    assert front.gateway.names == [f"jupyterlab.{SESSION}.slipway"]


def greeted(front: Front, stack: contextlib.ExitStack, count: int) -> list[Stream]:
    """So many connections of the owner's, which stay open."""
    streams = [Stream(front, front.web.ssh_ports[0], source=OWNER) for _ in range(count)]
    for stream in streams:
        stack.callback(stream.close)
    assert all(stream.opened for stream in streams)
    return streams


@pytest.mark.parametrize("sources", [STRANGERS[:1], STRANGERS])
def test_one_address_fills_no_sessions_places_for_log_ins(
    front: Front, attacked: socket.socket, sources: Sequence[str]
) -> None:
    """Nor do two: the oldest gives way only where all are taken."""
    with strangers(front, 90, SSH + b"x\r\n", sources) as held:
        time.sleep(2)
        assert 10 * len(sources) <= reached(attacked) <= WAITING - 2
        for stream in held:  # neither do those that go away at once
            stream.close()
    assert seconds(front) < 60


def test_ten_log_ins_at_once(front: Front) -> None:
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda _: greeted(front, stack, 1)[0], range(10)))
        assert all(stream.echoes() for stream in found)


def test_one_command_after_the_other(front: Front) -> None:
    for _ in range(40):
        begun = time.monotonic()
        assert seconds(front) < 60
        time.sleep(max(0, 0.15 - (time.monotonic() - begun)))  # a log-in is no faster


def test_open_tunnels_are_not_counted_as_log_ins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than an address may begin at once, one after the other; all are the session's use."""
    rendered = front_module.render
    monkeypatch.setattr(
        front_module,
        "render",
        lambda settings: rendered(settings).replace("conn_rate(30s)", "conn_rate(1s)"),
    )
    with running_front(tmp_path) as front, contextlib.ExitStack() as stack:
        front.routes.add(ssh_key(str(front.web.ssh_ports[0])), front.target)
        streams = []
        for _ in range(4):
            streams += greeted(front, stack, 6)
            time.sleep(2.1)
        assert all(stream.echoes(b"x" * 1000) for stream in streams)
        found = front.routes.traffic()[f"jupyterlab.{SESSION}.slipway"]
        assert found.bytes > 100 * len(streams)


def test_behind_a_balancer_each_client_is_counted_by_its_own_address(tmp_path: Path) -> None:
    """It stands in front of several hosts; its own address is everybody's."""
    with (
        running_front(tmp_path, trusted_proxies=[STRANGERS[0]]) as front,
        contextlib.ExitStack() as stack,
    ):
        port = front.web.ssh_ports[0]
        front.routes.add(ssh_key(str(port)), front.target)

        def connect(client: str) -> socket.socket:
            stream = socket.create_connection(("127.0.0.1", port), 60, (STRANGERS[0], 0))
            stream.sendall(f"PROXY TCP4 {client} 127.0.0.1 1 {port}\r\n".encode())
            return stack.enter_context(stream)

        def answer(client: str) -> bytes:
            with contextlib.suppress(ConnectionError):
                stream = connect(client)
                stream.sendall(SSH + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                return stream.recv(12)
            return b""

        # More than a quarter of what is free, too: the rate depends on how fast this machine is.
        for _ in range(200):
            connect("192.0.2.1")
        assert answer("192.0.2.1") == b""
        assert answer("192.0.2.2") == b"HTTP/1.1 200"

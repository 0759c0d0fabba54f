"""How often an app is asked until it answers, and what is said of one that does not."""

from __future__ import annotations

import os
import queue
import sys
from pathlib import Path

import pytest

from portal.node.runner.apps import app as apps
from portal.node.runner.apps import listening, readiness
from portal.node.runner.spec import AppStart
from tests.support.runner_apps import (
    DEMO,
    NETWORKED,
    NetworkedApp,
    WatchedApp,
    needs_namespaces,
    wait_until,
)

pytestmark = needs_namespaces

# Counts requests, and how many of them are open at once; what it does with each is an argument.
SERVER = """\
import os, socket, sys, threading, time
family = socket.AF_INET6 if sys.argv[1].count(":") > 1 else socket.AF_INET
if sys.argv[1] == "unix":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ["SLIPWAY_SOCKET"])
else:
    listener = socket.socket(family)
    host, _, port = sys.argv[1].rpartition(":")
    listener.bind((host, int(port)))
listener.listen(50)
open_now = most = count = 0
def serve(stream):
    global open_now, most, count
    open_now, count = open_now + 1, count + 1
    most = max(most, open_now)
    with open(os.environ["SLIPWAY_RUN"] + "/count", "w") as file:
        file.write(f"{count} {most}")
    stream.recv(1000)
    exec(sys.argv[2])
    open_now -= 1
    stream.close()
while True:
    stream, _ = listener.accept()
    threading.Thread(target=serve, args=(stream,), daemon=True).start()
"""
ANSWER = r'stream.sendall(b"HTTP/1.0 200 OK\r\n\r\n")'


def serving(place: str, action: str) -> str:
    """A script whose server listens at unix, or HOST:PORT, and does this with each request."""
    return f"#!/bin/sh\nexec {sys.executable} -c '{SERVER}' \"{place}\" '{action}'\n"


def counted(directory: str, name: str = DEMO) -> list[int]:
    """How many requests it got, and how many at once."""
    return [int(number) for number in Path(f"{directory}/{name}/count").read_text().split()]


def status_of(networked: NetworkedApp) -> int:
    """The status of a response, which is read to its end."""
    response = networked.get("/")
    response.read()
    return response.status


def order(script: str, timeout: float, listen: str = "unix") -> AppStart:
    return AppStart(DEMO, script, "/", timeout, listen=listen)


def test_an_app_that_closes_connections_is_asked_in_growing_pauses(
    watched: WatchedApp, directory: str
) -> None:
    watched.app.start(order(serving("unix", "pass"), timeout=3))
    report = watched.next()
    assert report["state"] == "failed"
    late = f"{DEMO} did not answer within 3 seconds: {readiness.CLOSES}"
    assert report["message"] == late
    requests, at_once = counted(directory)
    # 15 ms, then twice as long each time: eight in 3 s, and 200 with even pauses.
    assert 2 <= requests <= 10
    assert at_once == 1


def test_a_slow_start_page_is_asked_for_once(
    watched: WatchedApp, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "ANSWER_TIMEOUT", 0.05)
    watched.app.start(order(serving("unix", f"time.sleep(1.5); {ANSWER}"), timeout=30))
    assert watched.next()["state"] == "ready"
    assert counted(directory) == [1, 1]


@pytest.mark.parametrize(
    ("action", "finding"),
    [
        ("time.sleep(60)", readiness.SILENT),
        (r'stream.sendall(b"220 mail\r\n")', "what it answers is not HTTP"),
        (r'stream.sendall(b"\x15\x03\x01\x00\x02\x02\x0a")', readiness.TLS),
        (r'stream.sendall(b"HTTP/1.1 2"); time.sleep(60)', readiness.SILENT),
    ],
)
def test_it_is_said_what_was_found(watched: WatchedApp, action: str, finding: str) -> None:
    watched.app.start(order(serving("unix", action), timeout=1.2))
    message = watched.next()["message"]
    assert message == f"{DEMO} did not answer within 1.2 seconds: {finding}"


def test_what_was_found_is_reported_while_it_starts(
    watched: WatchedApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apps, "SLOW", 0.3)
    watched.app.start(order(serving("unix", "time.sleep(60)"), timeout=30))
    report = watched.next()
    assert (report["state"], report["message"]) == (
        "starting",
        "It accepts connections, but has not answered",
    )
    with pytest.raises(queue.Empty):
        watched.next(1.5)  # once is enough for a while


def test_a_port_instead_of_the_socket_is_named(watched: WatchedApp) -> None:
    serves = 'import socket, time; s = socket.create_server(("127.0.0.1", 0)); '
    says = "print(s.getsockname()[1], flush=True); time.sleep(60)"
    watched.app.start(order(f"exec {sys.executable} -c '{serves}{says}'", timeout=2))
    report = watched.next()
    found = f"it listens on port {report['log']}, not on the socket $SLIPWAY_SOCKET"
    assert report["message"] == f"{DEMO} did not answer within 2 seconds: {found}"


@pytest.mark.parametrize("place", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_an_app_is_reached_wherever_it_listens(networked: NetworkedApp, place: str) -> None:
    assert networked.start(serving(f"{place}:$PORT", ANSWER))["state"] == "ready"
    assert [status_of(networked) for _ in range(20)] == [200] * 20


def test_ipv4_is_preferred_if_both_are_served(networked: NetworkedApp, port: int) -> None:
    other = serving("::1:$PORT", 'stream.sendall(b"HTTP/1.0 418 Not me\\r\\n\\r\\n")')
    server = serving("127.0.0.1:$PORT", ANSWER)
    both = f"{{ sleep 0.5; {other.partition('exec ')[2]}}} &\n{server}"
    assert networked.start(both)["state"] == "ready"
    pid = next(iter(apps.processes_of(NETWORKED)))
    wait_until(lambda: ("::1", port) in listening.in_namespace_of(pid), 20)
    assert {status_of(networked) for _ in range(20)} == {200}


@pytest.mark.parametrize(
    ("place", "finding"),
    [
        ("127.0.0.1:5000", "it listens on port 5000, not on $PORT, which is {port}"),
        ("::1:5000", "it listens on port 5000, not on $PORT, which is {port}"),
        ("127.0.1.1:$PORT", "it listens on 127.0.1.1 port {port}, not on $PORT, which is {port}"),
    ],
)
def test_another_port_is_named(
    networked: NetworkedApp, port: int, directory: str, place: str, finding: str
) -> None:
    report = networked.start(serving(place, ANSWER), timeout=2)
    text = finding.format(port=port)
    assert report["message"] == f"{NETWORKED} did not answer within 2 seconds: {text}"
    assert not os.path.exists(f"{directory}/{NETWORKED}/count")


def test_nothing_listens(networked: NetworkedApp, port: int) -> None:
    report = networked.start("sleep 60", timeout=1)
    text = f"nothing listens on port {port}"
    assert report["message"] == f"{NETWORKED} did not answer within 1 seconds: {text}"


def test_a_port_that_closes_connections_is_asked_in_growing_pauses(
    networked: NetworkedApp, directory: str
) -> None:
    report = networked.start(serving("127.0.0.1:$PORT", "pass"), timeout=3)
    assert str(report["message"]).endswith(readiness.CLOSES)
    requests, at_once = counted(directory, NETWORKED)
    assert 2 <= requests <= 10
    assert at_once == 1

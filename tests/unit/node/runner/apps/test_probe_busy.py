"""Computing apps report that they are busy; the runner polls them at each heartbeat."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from portal.node.runner.apps import probe
from portal.node.runner.apps.app import App
from portal.node.runner.spec import AppStart
from tests.support.runner_apps import DEMO, wait_until

# Ready at /; /kernels returns the content of a file, and "asleep" there makes the server hang.
SERVER = """\
import os, socket, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.environ["SLIPWAY_SOCKET"])
listener.listen(5)
while True:
    stream, _ = listener.accept()
    asked = stream.recv(1000)
    said = open(os.environ["SLIPWAY_RUN"] + "/said").read() if b" /kernels " in asked else "200 "
    if said == "asleep":
        time.sleep(1)
    head, _, body = said.partition(" ")
    answer = f"HTTP/1.1 {head} X\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}"
    try:
        stream.sendall(answer.encode())
    except OSError:
        pass
    stream.close()
"""
ORDER = AppStart(
    DEMO,
    f"#!/bin/sh\nexec {sys.executable} -c '{SERVER}'\n",
    "/",
    10,
    busy="/kernels",
    busy_when='"state": *"busy"',
)


@pytest.fixture
def app(directory: str) -> Iterator[App]:
    """An app that has not been started."""
    app = App(DEMO, directory, "/opt/slipway", lambda app: None)
    yield app
    app.stop(0)


@pytest.mark.parametrize(
    ("said", "busy"),
    [
        ('200 [{"state": "idle"}, {"state":"busy"}]', True),
        ('200 [{"state": "idle"}]', False),
        ("200 []", False),
        ('404 "state": "busy"', False),
        ("asleep", True),
        ("nonsense", False),
    ],
)
def test_reported_activity(
    app: App, directory: str, monkeypatch: pytest.MonkeyPatch, said: str, busy: bool
) -> None:
    monkeypatch.setattr(probe, "BUSY_TIMEOUT", 0.3)
    app.start(ORDER)
    wait_until(lambda: app.state == "ready", 10)
    with open(f"{directory}/{DEMO}/said", "w", encoding="ascii") as file:
        file.write(said)
    assert app.busy() is busy


def test_a_stopped_app_is_not_busy(app: App) -> None:
    assert not app.busy()
    app.start(AppStart(DEMO, "exit 3", "/", 10, busy="/kernels", busy_when="busy"))
    wait_until(lambda: app.state == "failed", 10)
    assert not app.busy()

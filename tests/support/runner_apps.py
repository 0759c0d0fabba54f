"""Apps that a runner starts in unit tests."""

from __future__ import annotations

import http.client
import os
import queue
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from portal.node.runner.apps.app import App
from portal.node.runner.spec import AppStart

DEMO = f"demo-{os.getpid()}"
"""An app is found by its name among all processes, including those of other tests."""
# A minimal server: responds to every request on the socket with one status.
SERVER = """\
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.environ["SLIPWAY_SOCKET"])
listener.listen(5)
print("listening", flush=True)
while True:
    stream, _ = listener.accept()
    stream.recv(1000)
    stream.sendall(b"HTTP/1.1 %d X\\r\\nContent-Length: 0\\r\\n\\r\\n" % int(sys.argv[1]))
    stream.close()
"""


def app_script(body: str, status: int = 200) -> str:
    return f"#!/bin/sh\n{body}\nexec {sys.executable} -c '{SERVER}' {status}\n"


def start_order(text: str, timeout: float = 10) -> AppStart:
    return AppStart(DEMO, text, "/", timeout)


class WatchedApp:
    """An app and the queue of its reports."""

    def __init__(self, directory: str) -> None:
        self.reports: queue.Queue[dict[str, object]] = queue.Queue()
        self.app = App(DEMO, directory, "/opt/slipway", lambda app: self.reports.put(app.report()))

    def next(self, seconds: float = 10) -> dict[str, object]:
        return self.reports.get(timeout=seconds)


def wait_until(true: object, seconds: float = 5) -> None:
    assert callable(true)
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# A name that no other test uses and cleans up, perhaps at the same time.
NETWORKED = f"netns-{os.getpid()}"


def may_unshare() -> bool:
    """Whether this machine lets its users create namespaces."""
    done = subprocess.run(["unshare", "-Urn", "true"], capture_output=True, check=False)
    return done.returncode == 0


needs_namespaces = pytest.mark.skipif(
    not (shutil.which("haproxy") and may_unshare()), reason="needs haproxy and user namespaces"
)


class NetworkedApp:
    """An app in a network namespace, and the queue of its reports."""

    def __init__(self, directory: str) -> None:
        self.reports: queue.Queue[dict[str, object]] = queue.Queue()
        toolkit = Path(directory) / "toolkit"
        (toolkit / "bin").mkdir(parents=True)
        (toolkit / "bin" / "haproxy").symlink_to(str(shutil.which("haproxy")))
        self.app = App(
            NETWORKED, directory, str(toolkit), lambda app: self.reports.put(app.report())
        )

    def start(self, script: str, timeout: float = 20) -> dict[str, object]:
        self.app.start(AppStart(NETWORKED, script, "/", timeout, listen="tcp"))
        return self.reports.get(timeout=30)

    def get(self, path: str) -> http.client.HTTPResponse:
        connection = UnixConnection(self.app.socket_path)
        connection.request("GET", path)
        return connection.getresponse()


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("control", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(self._path)


APP_SPEC = {"name": "jupyterlab", "script": "exec true", "ready": "/api", "timeout": 60}

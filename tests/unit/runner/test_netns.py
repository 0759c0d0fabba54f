"""Apps that can only do TCP: reached through their socket, and by nobody else."""

from __future__ import annotations

import http.client
import os
import queue
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.runner import apps, netns
from portal.runner.apps import App
from portal.runner.spec import AppStart
from tests.unit.runner.test_apps import wait_until
from tests.unit.runner.test_control import UnixConnection

# Not the name that other tests use and clear away after them, perhaps at the same time.
NAME = f"netns-{os.getpid()}"
SERVER = f"exec {sys.executable} -m http.server --bind 127.0.0.1 $PORT\n"


def may_unshare() -> bool:
    """Whether this machine lets its users have namespaces."""
    done = subprocess.run(["unshare", "-Urn", "true"], capture_output=True, check=False)
    return done.returncode == 0


pytestmark = pytest.mark.skipif(
    not (shutil.which("haproxy") and may_unshare()), reason="needs haproxy and user namespaces"
)


class Told:
    """An app in a network of its own, and the queue of what it told."""

    def __init__(self, directory: str) -> None:
        self.told: queue.Queue[dict[str, object]] = queue.Queue()
        toolkit = Path(directory) / "toolkit"
        (toolkit / "bin").mkdir(parents=True)
        (toolkit / "bin" / "haproxy").symlink_to(str(shutil.which("haproxy")))
        self.app = App(NAME, directory, str(toolkit), lambda app: self.told.put(app.report()))

    def start(self, script: str, timeout: float = 20) -> dict[str, object]:
        self.app.start(AppStart(NAME, script, "/", timeout, listen="tcp"))
        return self.told.get(timeout=30)

    def get(self, path: str) -> http.client.HTTPResponse:
        connection = UnixConnection(self.app.socket_path)
        connection.request("GET", path)
        return connection.getresponse()


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """The port in there; out here it is nobody's, unlike the usual one perhaps."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    monkeypatch.setattr(netns, "PORT", number)
    return number


@pytest.fixture
def told(directory: str, port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.setenv("HOME", directory)
    told = Told(directory)
    yield told
    told.app.stop(0)
    wait_until(lambda: not list(apps.processes_of(NAME)))


def test_it_is_reached_through_its_socket_and_not_by_its_port(
    told: Told, port: int, directory: str
) -> None:
    (Path(directory) / "hello.txt").write_text("hello")
    # Slow to come: until it listens, the forwarder in front of it is no answer.
    assert told.start(f"sleep 0.5\n{SERVER}")["state"] == "ready"
    assert told.get("/hello.txt").read() == b"hello"
    mine = os.stat("/proc/self/ns/net").st_ino
    assert all(os.stat(f"/proc/{pid}/ns/net").st_ino != mine for pid in apps.processes_of(NAME))
    with socket.socket() as stream:
        assert stream.connect_ex(("127.0.0.1", port)) != 0


def test_it_stays_who_it_is_and_reaches_nothing(told: Told) -> None:
    look = (
        f"id -u; {sys.executable} -c 'import socket; socket.create_connection((\"192.0.2.1\", 9))'"
    )
    report = told.start(f"{look}; exit 1")
    assert str(report["log"]).startswith(f"{os.getuid()}\n")
    assert "Network is unreachable" in str(report["log"])


def test_two_of_them_do_not_meet(told: Told, directory: str) -> None:
    assert told.start(SERVER)["state"] == "ready"
    other = App("other", directory, f"{directory}/toolkit", lambda app: None)
    other.start(AppStart("other", SERVER, "/", 20, listen="tcp"))
    wait_until(lambda: other.state == "ready", 20)
    other.stop(1)
    assert told.get("/").status == 200


def test_nothing_is_left_when_it_ends_by_itself(told: Told, directory: str) -> None:
    wait = "while [ ! -e go ]; do sleep 0.1; done; kill $!; exit 3"
    assert told.start(f"{SERVER.strip()} &\n{wait}".removeprefix("exec "))["state"] == "ready"
    (Path(directory) / "go").touch()
    report = told.told.get(timeout=20)
    assert report["message"] == f"{NAME} ended (exit code 3)"
    # Its forwarder went with it; the next start finds the place free.
    wait_until(lambda: not list(apps.processes_of(NAME)))
    assert told.start(SERVER)["state"] == "ready"


def test_a_node_without_namespaces_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_library: object) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(netns, "enter", refused)
    assert netns.main(["haproxy", "forward.cfg", "true"]) == 1
    assert "does not permit network namespaces: [Errno 1] not permitted" in capsys.readouterr().out

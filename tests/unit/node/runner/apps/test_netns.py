"""Apps that only support TCP are reachable through their socket, and by nobody else."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from portal.node.runner.apps import app as apps
from portal.node.runner.apps import netns
from portal.node.runner.apps.app import App
from portal.node.runner.spec import AppStart
from tests.support.runner_apps import (
    NETWORKED,
    NetworkedApp,
    needs_namespaces,
    wait_until,
)

SERVER = f"exec {sys.executable} -m http.server --bind 127.0.0.1 $PORT\n"


pytestmark = needs_namespaces


def test_it_is_reached_through_its_socket_and_not_by_its_port(
    networked: NetworkedApp, port: int, directory: str
) -> None:
    (Path(directory) / "hello.txt").write_text("hello")
    # Slow to start: until it listens, the forwarder in front of it does not respond.
    assert networked.start(f"sleep 0.5\n{SERVER}")["state"] == "ready"
    assert networked.get("/hello.txt").read() == b"hello"
    mine = os.stat("/proc/self/ns/net").st_ino
    assert all(
        os.stat(f"/proc/{pid}/ns/net").st_ino != mine for pid in apps.processes_of(NETWORKED)
    )
    with socket.socket() as stream:
        assert stream.connect_ex(("127.0.0.1", port)) != 0


def test_it_keeps_its_user_and_reaches_no_network(networked: NetworkedApp) -> None:
    look = (
        f"id -u; {sys.executable} -c 'import socket; socket.create_connection((\"192.0.2.1\", 9))'"
    )
    report = networked.start(f"{look}; exit 1")
    assert str(report["log"]).startswith(f"{os.getuid()}\n")
    assert "Network is unreachable" in str(report["log"])


def test_two_apps_are_isolated_from_each_other(networked: NetworkedApp, directory: str) -> None:
    assert networked.start(SERVER)["state"] == "ready"
    other = App("other", directory, f"{directory}/toolkit", lambda app: None)
    other.start(AppStart("other", SERVER, "/", 20, listen="tcp"))
    wait_until(lambda: other.state == "ready", 20)
    other.stop(1)
    assert networked.get("/").status == 200


def test_its_interruption_does_not_cut_it_off(networked: NetworkedApp) -> None:
    """As Jupyter interrupts kernels: with the whole process group."""
    assert networked.start(f"trap '' INT\n{SERVER}")["state"] == "ready"
    group = os.getpgid(min(apps.processes_of(NETWORKED)))
    os.killpg(group, signal.SIGINT)
    time.sleep(1)
    assert networked.get("/").status == 200


def test_nothing_is_left_after_it_ends(networked: NetworkedApp, directory: str) -> None:
    wait = "while [ ! -e go ]; do sleep 0.1; done; kill $!; exit 3"
    assert networked.start(f"{SERVER.strip()} &\n{wait}".removeprefix("exec "))["state"] == "ready"
    (Path(directory) / "go").touch()
    report = networked.reports.get(timeout=20)
    assert report["message"] == f"{NETWORKED} ended (exit code 3)"
    # Its forwarder has ended, too; the next start finds the socket free.
    wait_until(lambda: not list(apps.processes_of(NETWORKED)))
    assert networked.start(SERVER)["state"] == "ready"


def test_a_node_without_namespaces_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_library: object) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(netns, "enter", refused)
    assert netns.main(["haproxy", "forward.cfg", "true"]) == 1
    assert "does not permit network namespaces: [Errno 1] not permitted" in capsys.readouterr().out

"""Kernels that know only TCP, and those of users' Pythons, with stand-ins for Jupyter's modules."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tornado.web import HTTPError

from tests.support.paths import ROOT

SERVER = ROOT / "images" / "toolkit" / "jupyter" / "server.py"
PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5}
UNSHARE = ["unshare", "--map-root-user", "--net", "true"]


class Manager:
    """Jupyter's manager of one kernel; `ends`: how often the kernel ends before it answers."""

    kernel_name, connection_file, hb_port, transport = "deno", "", 5, "ipc"
    provisioner, execution_state, ip = None, "idle", "/nowhere"
    ends = 0
    starts = 0

    def __init__(self) -> None:
        self.log = logging.getLogger("kernels")
        self.killed = False

    async def start_kernel(self) -> None:
        self.starts += 1

    async def _async_restart_kernel(self, now: bool) -> None:
        self.starts += 1

    async def _async_kill_kernel(self) -> None:
        self.killed = True

    async def _async_is_alive(self) -> bool:
        return self.starts > self.ends

    def stop_restarter(self) -> None:
        pass


class Heart:
    """A ZeroMQ socket whose question is answered."""

    def __enter__(self) -> Heart:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def connect(self, address: str) -> None:
        pass

    async def send(self, _question: bytes) -> None:
        pass

    async def poll(self, _milliseconds: float) -> int:
        return 1


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """server.py's names."""
    context = SimpleNamespace(instance=lambda: SimpleNamespace(socket=lambda _kind: Heart()))
    stand_ins: dict[str, dict[str, object]] = {
        "jupyter_server": {},
        "jupyter_server.base": {},
        "jupyter_server.base.handlers": {"APIHandler": object},
        "jupyter_server.services": {},
        "jupyter_server.services.kernels": {},
        "jupyter_server.services.kernels.kernelmanager": {"ServerKernelManager": Manager},
        "jupyter_server.utils": {"url_path_join": "/".join},
        "zmq": {"REQ": 3},
        "zmq.asyncio": {"Context": context},
    }
    for name, content in stand_ins.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    return runpy.run_path(str(SERVER))


def start(server: dict[str, Any], ends: int) -> Any:
    manager = server["KernelManager"]()
    manager.ends = ends
    asyncio.run(manager.start_kernel())
    return manager


def test_a_kernel_that_answers_is_started_once(server: dict[str, Any]) -> None:
    manager = start(server, 0)
    assert (manager.starts, manager._apart, manager.killed) == (1, False, False)


def test_one_that_ends_is_tried_in_a_network_of_its_own(
    server: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Deno's kernel ended, and the notebook showed "Disconnected" without a reason."""
    manager = start(server, 1)
    assert (manager.starts, manager._apart, manager.killed) == (2, True, False)
    assert "the kernel deno is ended: it ended before it answered" in caplog.text


def test_one_that_ends_there_as_well_gives_the_notebook_a_reason(server: dict[str, Any]) -> None:
    with pytest.raises(HTTPError) as raised:
        start(server, 2)
    assert raised.value.status_code == 500
    assert str(raised.value.log_message).startswith("The kernel deno does not start: it ended")


def test_a_python_kernel_is_not_watched(server: dict[str, Any]) -> None:
    manager = server["KernelManager"]()
    manager._guarded, manager.ends = True, 5
    asyncio.run(manager.start_kernel())
    assert manager.starts == 1


def test_the_users_python_runs_the_servers_kernels_and_no_others(
    server: dict[str, Any], tmp_path: Path
) -> None:
    users = tmp_path / "python3"
    users.touch()
    own = [sys.executable, "-m", "ipykernel_launcher", "-f", "x"]
    change, environment = server["with_users_python"], {"SLIPWAY_PYTHON": str(users)}
    assert change(own, environment) == [str(users), *own[1:]]
    assert change(own, {}) == own
    assert change(own, {"SLIPWAY_PYTHON": "/nowhere"}) == own
    assert change(["/data/mine/bin/python", "-m", "x"], environment)[0] == "/data/mine/bin/python"
    assert change(["deno", "jupyter"], environment)[0] == "deno"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder whose path leaves room for sockets."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def command(server: dict[str, Any], folder: Path, *argv: str) -> list[str]:
    """The command of a kernel in a network of its own."""
    file = folder / "kernel-7.json"
    told = {**PORTS, "transport": "ipc", "ip": f"{folder}/kernel-7-ipc", "key": "secret"}
    file.write_text(json.dumps(told))
    words: list[str] = server["apart"]([*argv, str(file)], str(file))
    return words


def test_it_gets_a_connection_file_of_its_own(server: dict[str, Any], folder: Path) -> None:
    words = command(server, folder, "sh", "-c", "x")
    assert words[0].endswith("/bin/python") and words[2].endswith("/runner/apps/netns.py")
    assert words[-4:] == ["/bin/sh", "-c", "x", f"{folder}/kernel-7-tcp.json"] or words[
        -4
    ].endswith("/sh")
    told = json.loads((folder / "kernel-7-tcp.json").read_text())
    assert (told["transport"], told["ip"], told["key"]) == ("tcp", "127.0.0.1", "secret")
    assert [told[name] for name in PORTS] == [9001, 9002, 9003, 9004, 9005]
    assert json.loads((folder / "kernel-7.json").read_text())["transport"] == "ipc"


LISTENS = """
import json, socket, sys
told = json.load(open(sys.argv[1]))
listener = socket.create_server((told["ip"], told["shell_port"]))
while True:
    stream, _ = listener.accept()
    stream.sendall(stream.recv(100).upper())
    stream.close()
"""


@pytest.mark.skipif(
    subprocess.run(UNSHARE, capture_output=True, check=False).returncode != 0
    or not os.path.exists("/usr/sbin/haproxy"),
    reason="no network namespaces or no HAProxy here",
)
def test_the_servers_sockets_lead_to_its_ports_and_nothing_else_does(
    server: dict[str, Any], folder: Path
) -> None:
    words = command(server, folder, sys.executable, "-c", LISTENS)
    netns = str(ROOT / "portal" / "node" / "runner" / "apps" / "netns.py")
    words[:4] = [sys.executable, "-IS", netns, "/usr/sbin/haproxy"]
    process = subprocess.Popen(words)
    try:
        assert ask(folder / "kernel-7-ipc-1") == b"HELLO"
        with socket.socket() as stream:
            assert stream.connect_ex(("127.0.0.1", 9001)) != 0, "another user could get there"
    finally:
        process.kill()
        process.wait()


def ask(path: Path) -> bytes:
    """What the kernel answers, as soon as it does."""
    for _ in range(300):
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(10)
            try:
                stream.connect(str(path))
                stream.sendall(b"hello")
                answer = stream.recv(100)
            except OSError:
                answer = b""
        if answer:
            return answer
        subprocess.run(["sleep", "0.1"], check=True)
    return b""

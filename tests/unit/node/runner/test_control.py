"""The control interface over a real unix socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from portal.node.runner import control
from portal.node.runner.apps.supervisor import Supervisor
from tests.support.runner_apps import DEMO, UnixConnection, app_script, wait_until


@pytest.fixture
def supervisor(directory: str) -> Iterator[Supervisor]:
    supervisor = Supervisor([DEMO, "other"], directory, "/opt/slipway", lambda app: None)
    control.serve(directory, supervisor)
    yield supervisor
    supervisor.stop_all(0)


def ask(
    directory: str, method: str, path: str, body: object = None
) -> tuple[int, dict[str, object]]:
    connection = UnixConnection(f"{directory}/control.sock")
    data = body if isinstance(body, str) else json.dumps(body)
    connection.request(method, path, None if body is None else data)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, json.loads(text or b"{}")


def start(name: str = DEMO) -> dict[str, object]:
    return {"name": name, "script": app_script(""), "ready": "/", "timeout": 10}


def test_start_list_stop(supervisor: Supervisor, directory: str) -> None:
    assert ask(directory, "GET", "/apps") == (200, {"apps": {}})
    assert ask(directory, "PUT", f"/apps/{DEMO}", start())[0] == 202
    wait_until(lambda: supervisor.states() == {DEMO: "ready"})
    assert ask(directory, "PUT", f"/apps/{DEMO}", start()) == (202, {"state": "ready"})
    assert ask(directory, "DELETE", f"/apps/{DEMO}") == (204, {})
    assert ask(directory, "GET", "/apps") == (200, {"apps": {DEMO: "stopped"}})
    assert ask(directory, "DELETE", f"/apps/{DEMO}")[0] == 204
    assert ask(directory, "PUT", f"/apps/{DEMO}", start())[0] == 202
    wait_until(lambda: supervisor.states() == {DEMO: "ready"})


def test_invalid_requests_are_refused_and_do_no_harm(
    supervisor: Supervisor, directory: str
) -> None:
    for status, method, path, body in [
        (400, "PUT", f"/apps/{DEMO}", "{"),
        (400, "PUT", f"/apps/{DEMO}", "[]"),
        (400, "PUT", f"/apps/{DEMO}", {"name": DEMO}),
        (400, "PUT", f"/apps/{DEMO}", start("other")),
        (404, "PUT", "/apps/elsewhere", start("elsewhere")),
        (404, "DELETE", "/apps/elsewhere", None),
        (404, "POST", f"/apps/{DEMO}", start()),
        (404, "GET", f"/apps/{DEMO}", None),
        (404, "GET", "/", None),
    ]:
        assert ask(directory, method, path, body)[0] == status, (method, path)
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(f"{directory}/control.sock")
        stream.sendall(b"\x16\x03\x01 garbage\r\n\r\n")
        stream.settimeout(5)
        assert stream.recv(10) == b""
    assert ask(directory, "GET", "/apps") == (200, {"apps": {}})
    assert supervisor.states() == {}

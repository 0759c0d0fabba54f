"""An app's environment, when an SSH server counts as ready, and an app's own details."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from portal.node.runner.apps.app import App
from portal.node.runner.spec import AppStart, SpecError, parse_app_start
from tests.support.runner_apps import APP_SPEC, DEMO, WatchedApp, app_script, start_order

# A server that greets first, as sshd does; HTTP requests get no response.
GREETER = """\
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.environ["SLIPWAY_SOCKET"])
listener.listen(5)
while True:
    stream, _ = listener.accept()
    stream.sendall(sys.argv[1].encode())
    stream.recv(1000)
    stream.close()
"""


def greeter(banner: str) -> str:
    return f"#!/bin/sh\nexec {sys.executable} -c '{GREETER}' '{banner}'\n"


def test_an_ssh_server_is_ready_when_it_shows_its_banner(watched: WatchedApp) -> None:
    watched.app.start(AppStart(DEMO, greeter("SSH-2.0-x\r\n"), "/", 10, kind="ssh"))
    assert watched.next()["state"] == "ready"


def test_another_greeting_is_not_an_ssh_server(watched: WatchedApp) -> None:
    watched.app.start(AppStart(DEMO, greeter("220 mail"), "/", 0.5, kind="ssh"))
    assert watched.next()["state"] == "failed"


def test_details_written_by_an_app_are_reported_with_ready(watched: WatchedApp) -> None:
    watched.app.start(start_order(app_script('echo "key x" > "$SLIPWAY_RUN/details"')))
    report = watched.next()
    assert (report["state"], report["details"]) == ("ready", "key x")
    watched.app.stop(1)
    assert "details" not in watched.next()
    watched.app.start(start_order(app_script("")))
    # Another run, which has reported nothing.
    assert "details" not in watched.next()


def test_long_details_are_truncated(watched: WatchedApp) -> None:
    watched.app.start(start_order(app_script('yes | head -c 9000 > "$SLIPWAY_RUN/details"')))
    assert len(str(watched.next()["details"])) <= 4096


def test_environment_variables_of_an_app(
    watched: WatchedApp, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", directory)
    origin = "https://apps.example.org:10007"
    text = "env | grep -A 1 ^SLIPWAY_; exit 1"  # of a whole environment, the log keeps the end
    watched.app.start(AppStart(DEMO, text, "/", 10, asked="a b\nc", origin=origin))
    lines = str(watched.next()["log"]).split("\n")
    for line in (f"SLIPWAY_ORIGIN={origin}", "SLIPWAY_BASE_PATH=/", "SLIPWAY_ASKED=a b", "c"):
        assert line in lines
    assert Path(f"{directory}/{DEMO}/start.sh").read_text() == text


@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_where_there_is_only_loopback_no_proxy_is_asked(directory: str, listen: str) -> None:
    """An app that asks itself by 127.0.0.1, as Gradio does, would ask the proxy for it."""
    app = App(DEMO, directory, "/t", lambda _app: None, {"http_proxy": "http://proxy.example.org"})
    found = app._environment(AppStart(DEMO, "x", "/", 10, listen=listen))
    alone = ["*", "*"] if listen == "tcp" else [None, None]
    assert [found.get("no_proxy"), found.get("NO_PROXY")] == alone


def test_users_own_paths_come_before_those_of_packages(
    directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PATH", "/p:/image"), ("SLIPWAY_PATH", "/image"), ("PYTHONPATH", "/t")):
        monkeypatch.setenv(name, value)
    app = App(DEMO, directory, "/t", lambda _app: None, {"PATH": "/mine", "PYTHONPATH": "/lib"})
    found = app._environment(AppStart(DEMO, "x", "/", 10))
    assert found["PATH"] == "/mine:/p:/image"
    assert found["SLIPWAY_PATH"] == "/mine:/image", "what JupyterLab is started with"
    assert found["PYTHONPATH"] == "/lib:/t"


def test_a_start_request_is_read_completely() -> None:
    more = {
        "kind": "ssh",
        "listen": "tcp",
        "asked": "x",
        "origin": "http://x:1",
        "busy": "/api/kernels",
        "busy_when": "b.sy",
    }
    start = parse_app_start({**APP_SPEC, **more})
    assert {key: getattr(start, key) for key in more} == more
    plain = parse_app_start(APP_SPEC)
    assert (plain.kind, plain.listen, plain.asked, plain.busy) == ("web", "unix", "", "")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "telnet"),
        ("listen", "udp"),
        ("asked", 7),
        ("asked", "a\0b"),
        ("origin", []),
        ("busy", "api"),
        ("busy_when", "(("),
    ],
)
def test_an_invalid_start_request_names_the_field(field: str, value: object) -> None:
    with pytest.raises(SpecError) as caught:
        parse_app_start({**APP_SPEC, field: value})
    assert caught.value.field == field

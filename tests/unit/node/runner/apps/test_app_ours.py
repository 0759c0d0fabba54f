"""The commands of apps/ as started by the runner; programs of images are faked."""

from __future__ import annotations

import os
import queue
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from portal.adapters.catalog import read_app
from portal.node.runner.apps.app import App
from portal.node.runner.spec import AppStart
from tests.support.paths import ROOT
from tests.support.runner_apps import may_unshare

APPS = ROOT / "apps"
Start = Callable[..., dict[str, object]]

# Accepts exactly the real programs' options; listens where it was told to.
STAND_IN = """\
#!{python}
import argparse, http.server, os, socket, socketserver, sys
parser = argparse.ArgumentParser()
for name in {flags!r}:
    parser.add_argument(name, action="store_true")
for name in {options!r}:
    parser.add_argument(name)
parser.add_argument("folder", nargs="?")
options = parser.parse_args()
print(options, flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == {ready!r}:
            self.send_response(200)
            self.end_headers()
    def address_string(self):
        return "somebody"
class Unix(socketserver.UnixStreamServer):
    def get_request(self):
        return self.socket.accept()[0], ("", 0)
path = getattr(options, "socket", None)
if path:
    server = Unix(path, Handler)
else:
    server = http.server.HTTPServer((options.host, int(options.port)), Handler)
server.serve_forever()
"""


@pytest.fixture
def programs(directory: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the image's programs, and a toolkit."""
    folder = Path(directory) / "image"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "haproxy").symlink_to(shutil.which("haproxy") or "/missing")
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", directory)
    return folder


@pytest.fixture
def start(directory: str, programs: Path) -> Iterator[Start]:
    """Starts one of our apps under a name unique to the test, and returns its first report.

    `logged` is waited for, since an app can be ready before its output has been read.
    """
    running: list[App] = []

    def begin(app: str, asked: str = "", logged: str = "") -> dict[str, object]:
        spec = read_app(APPS / app)
        reports: queue.Queue[dict[str, object]] = queue.Queue()
        name = f"{app}-{os.getpid()}"
        running.append(App(name, directory, str(programs), lambda app: reports.put(app.report())))
        running[-1].start(
            AppStart(name, spec.script, spec.ready, 20, listen=spec.listen, asked=asked)
        )
        report = reports.get(timeout=30)
        deadline = time.monotonic() + 30
        while logged not in str(report["log"]) and time.monotonic() < deadline:
            time.sleep(0.05)
            report["log"] = running[-1].report()["log"]
        return report

    yield begin
    for app in running:
        app.stop(1)


def stand_in(programs: Path, name: str, ready: str, flags: list[str], options: list[str]) -> None:
    """Add a program to the image."""
    text = STAND_IN.format(python=sys.executable, ready=ready, flags=flags, options=options)
    (programs / "bin" / name).write_text(text)
    (programs / "bin" / name).chmod(0o755)


def test_code_server_listens_on_its_socket(start: Start, programs: Path, directory: str) -> None:
    flags = ["telemetry", "update-check", "getting-started-override", "proxy"]
    options = ["--socket", "--socket-mode", "--session-socket", "--auth"]
    names = [f"--disable-{name}" for name in flags] + ["--ignore-last-opened"]
    stand_in(programs, "code-server", "/healthz", names, options)
    report = start("code-server", logged="auth='none'")
    assert report["state"] == "ready"
    assert "auth='none'" in str(report["log"])
    assert f"folder='{directory}'" in str(report["log"])


namespaces = pytest.mark.skipif(
    not (shutil.which("haproxy") and may_unshare()), reason="needs haproxy and user namespaces"
)


@namespaces
@pytest.mark.parametrize(
    ("asked", "logs"),
    [("", "{home}"), ("runs", "runs"), ("~/my runs", "{home}/my runs"), ("$(id)", "$(id)")],
)
def test_tensorboard_shows_the_given_folder(
    start: Start, programs: Path, directory: str, asked: str, logs: str
) -> None:
    options = ["--logdir", "--host", "--port", "--load_fast", "--window_title"]
    stand_in(programs, "tensorboard", "/data/logdir", [], options)
    shown = f"logdir={logs.format(home=directory)!r}"
    report = start("tensorboard", asked, logged=shown)
    assert report["state"] == "ready"
    assert shown in str(report["log"])


@namespaces
def test_any_web_app_runs_the_given_command(start: Start) -> None:
    report = start("webapp", f"exec {sys.executable} -m http.server $PORT")
    assert report["state"] == "ready"


@namespaces
def test_any_web_app_requires_a_command(start: Start) -> None:
    report = start("webapp")
    assert report["state"] == "failed"
    assert "Enter the command that starts it" in str(report["log"])

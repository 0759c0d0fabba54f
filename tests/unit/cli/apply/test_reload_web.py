"""New workers of a real gunicorn, whose application takes a while to load."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.adapters.web_processes import SOCKET, Gunicorn, announce
from portal.cli.apply import reload_web
from portal.cli.apply.reload_web import WebReload
from portal.errors import Unavailable
from tests.support.paths import ROOT

LOADS = 3.0
"""Seconds that the application takes to load; no request may take as long."""
APP = f"""\
import os, time
from pathlib import Path
from portal.adapters.web_processes import announce
time.sleep({LOADS})
here = Path(__file__).parent
text = (here / "text").read_text()
announce(here)
def app(environ, start):
    time.sleep(float(environ["QUERY_STRING"] or 0))
    start("200 OK", [])
    return [f"{{text}} {{os.getpid()}}".encode()]
"""


def ask(run: Path, seconds: float = 0.0) -> tuple[str, int]:
    """What the application answers: its text and its process."""
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.sock.settimeout(60)
        connection.sock.connect(str(run / SOCKET))
        connection.request("GET", f"/?{seconds}")
        text, pid = connection.getresponse().read().decode().split()
    finally:
        connection.close()
    return text, int(pid)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """The folder of a running gunicorn with two workers."""
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "text").write_text("one")
    options = f"--bind unix:{tmp_path}/{SOCKET} --workers 2 --threads 4 --no-control-socket"
    words = [sys.executable, "-m", "gunicorn", *options.split(), "app:app"]
    env = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while len(list((tmp_path / "web").glob("*"))) < 2:
            assert time.monotonic() < deadline, "gunicorn has not started"
            time.sleep(0.1)
        yield tmp_path
    finally:
        process.terminate()
        try:
            process.wait(40)
        finally:
            process.kill()
            process.wait()


def test_nobody_waits_for_the_new_workers(run: Path) -> None:
    gunicorn = Gunicorn(run)
    first = gunicorn.first()
    old = gunicorn.workers(first)
    assert len(old) == 2
    took: list[float] = []
    stop = threading.Event()

    def send() -> None:
        while not stop.wait(0.01):
            begun = time.monotonic()
            ask(run)
            took.append(time.monotonic() - begun)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        (run / "text").write_text("two")
        WebReload(gunicorn).run()
    finally:
        stop.set()
        sender.join()
    new = gunicorn.workers(first)
    assert (len(new), new & old, gunicorn.first()) == (2, set(), first)
    assert {ask(run) for _ in range(8)} <= {("two", pid) for pid in new}
    assert max(took) < LOADS, "requests were answered while each new worker loaded"


def test_a_request_that_runs_is_answered_by_its_old_worker(run: Path) -> None:
    found: list[tuple[str, int]] = []
    asking = threading.Thread(target=lambda: found.append(ask(run, 4 * LOADS)))
    asking.start()
    time.sleep(0.5)
    (run / "text").write_text("two")
    WebReload(Gunicorn(run)).run()
    asking.join()
    assert [text for text, _ in found] == ["one"]
    assert ask(run)[0] == "two"


def test_what_an_interrupted_attempt_left_is_ended(run: Path) -> None:
    gunicorn = Gunicorn(run)
    first = gunicorn.first()
    os.kill(first, signal.SIGTTIN)
    deadline = time.monotonic() + 30
    while len(gunicorn.ready(gunicorn.workers(first))) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    before = gunicorn.workers(first)
    WebReload(gunicorn).run()
    after = gunicorn.workers(first)
    assert (len(after), after & before) == (2, set())


def test_a_worker_that_does_not_load_ends_no_old_one(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload_web, "READY_SECONDS", 0.5)
    gunicorn = Gunicorn(run)
    old = gunicorn.workers(gunicorn.first())
    with pytest.raises(Unavailable, match=r"no new worker is ready within 0\.5 s"):
        WebReload(gunicorn).run()
    assert old <= gunicorn.workers(gunicorn.first())
    assert ask(run)[0] == "one"


def test_without_gunicorn_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="does not listen: No such file"):
        WebReload(Gunicorn(tmp_path))


def test_what_dead_processes_announced_is_forgotten(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / str(process.pid)).touch()
    announce(tmp_path)
    assert [file.name for file in (tmp_path / "web").iterdir()] == [str(os.getpid())]


def test_a_folder_that_is_missing_stops_no_worker(tmp_path: Path) -> None:
    announce(tmp_path / "missing" / "run")
    assert not (tmp_path / "missing").exists()

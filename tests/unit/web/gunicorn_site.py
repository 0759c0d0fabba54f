"""The portal in a real gunicorn: `gunicorn tests.unit.web.gunicorn_site:app`."""

from __future__ import annotations

import contextlib
import http.client
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from flask import Flask, request

from portal.cli.web import gunicorn_arguments
from portal.config import Settings
from portal.config.web import RUNNERS_SOCKET
from portal.web.app import create_app
from tests.support.cluster import wait_for
from tests.support.fakes import PASSWORDS, make_world
from tests.support.paths import TEMPLATES
from tests.unit.web.front import Front

LARGE = "large.bin"
"""A static file of 2 MB: more than all buffers on the way; the portal's largest has 1.3 MB."""
STUDENTS = tuple(f"student{number}" for number in range(300))
"""Accounts with the same password."""
PASSWORD = "secret of the class"
_SETTINGS = "SLIPWAY_TEST_SETTINGS"
HELD_PAGE = "/login"
"""The page that is answered only once nothing holds it."""


def app() -> Flask:
    """The portal over the fakes of tests/support/fakes.py, with more people and a large file."""
    file = Path(os.environ[_SETTINGS])
    PASSWORDS.update(dict.fromkeys(STUDENTS, PASSWORD))
    portal = create_app(make_world(Settings.model_validate_json(file.read_text())).services)
    static = file.with_name("static")
    shutil.copytree(str(portal.static_folder), static)
    (static / LARGE).write_bytes(os.urandom(1 << 21))
    for each in (portal, portal.extensions["slipway_gate"]):
        each.static_folder = str(static)
    portal.before_request(lambda: _wait(file.with_name("held")))
    return portal


def _wait(held: Path) -> None:
    if request.path == HELD_PAGE and held.exists():
        waiting = held / secrets.token_hex(8)
        waiting.touch()
        while waiting.exists():
            time.sleep(0.05)


@contextlib.contextmanager
def held(front: Front) -> Iterator[Callable[[], int]]:
    """Keep requests for HELD_PAGE in their threads; yields the number of those."""
    folder = front.ca.parent / "held"
    folder.mkdir()
    try:
        yield lambda: len(list(folder.iterdir()))
    finally:
        shutil.rmtree(folder)


def _answers(front: Front) -> bool:
    asking = http.client.HTTPConnection("127.0.0.1", front.port, timeout=5)
    with contextlib.closing(asking):
        try:
            asking.request("GET", "/healthz", headers={"Host": f"localhost:{front.port}"})
            return asking.getresponse().status == 200
        except TimeoutError:  # it has bound its socket, and is loading
            return False


@contextlib.contextmanager
def behind(front: Front) -> Iterator[None]:
    """Run gunicorn in the place of the server that stands in for the portal.

    Its options are the portal's, but it has one worker only, so that nothing can hide in another.
    """
    folder = front.ca.parent
    front.portal.shutdown()
    front.portal.server_close()
    for name in ("portal.sock", RUNNERS_SOCKET):
        (folder / name).unlink()
    (folder / "secret_key").write_text("0" * 64)
    settings = {
        "web": front.web.model_dump(),
        "state": {"directory": str(folder), "run": str(folder)},
        "sessions": {"templates": str(TEMPLATES)},
    }
    file = folder / "settings.json"
    file.write_text(Settings.model_validate(settings).model_dump_json())
    options = gunicorn_arguments(Settings.model_validate(settings))[:-1]
    options[options.index("--workers") + 1] = "1"
    logger = options.index("--logger-class")  # reads the site's settings
    del options[logger : logger + 2]
    argv = [sys.executable, "-m", "gunicorn", *options, "tests.unit.web.gunicorn_site:app()"]
    process = subprocess.Popen(argv, env=os.environ | {_SETTINGS: str(file)})
    try:
        wait_for("gunicorn", lambda: _answers(front), 90)
        yield
    finally:
        process.terminate()
        process.wait(40)

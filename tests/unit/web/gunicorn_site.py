"""The portal in a real gunicorn: `gunicorn tests.unit.web.gunicorn_site:app`."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from flask import Flask

from portal.config import Settings
from portal.web.app import create_app
from tests.support.cluster import wait_for
from tests.support.fakes import make_world
from tests.support.paths import TEMPLATES
from tests.unit.web.front import Front

LARGE = "large.bin"
"""A static file of 2 MB: more than all buffers on the way; the portal's largest has 1.3 MB."""
_SETTINGS = "SLIPWAY_TEST_SETTINGS"
_COMMAND = Path(__file__).parents[3] / "cluster/supervisor/portal.conf"


def app() -> Flask:
    """The portal over the fakes of tests/support/fakes.py, with a large static file."""
    file = Path(os.environ[_SETTINGS])
    portal = create_app(make_world(Settings.model_validate_json(file.read_text())).services)
    static = file.with_name("static")
    shutil.copytree(str(portal.static_folder), static)
    (static / LARGE).write_bytes(os.urandom(1 << 21))
    for each in (portal, portal.extensions["slipway_gate"]):
        each.static_folder = str(static)
    return portal


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

    Its options are the cluster's, but it has one worker only, so that nothing can hide in another.
    """
    folder = front.ca.parent
    front.portal.shutdown()
    front.portal.server_close()
    sock = folder / "portal.sock"
    sock.unlink()
    (folder / "secret_key").write_text("0" * 64)
    settings = {
        "web": front.web.model_dump() | {"logins_per_minute": 1000},
        "state": {"directory": str(folder), "run": str(folder)},
        "sessions": {"templates": str(TEMPLATES)},
    }
    file = folder / "settings.json"
    file.write_text(Settings.model_validate(settings).model_dump_json())
    command = re.search(r"^command = gunicorn (.*) portal.wsgi:app$", _COMMAND.read_text(), re.M)
    assert command
    options = command[1].replace("/run/slipway/portal.sock", str(sock)).split()
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

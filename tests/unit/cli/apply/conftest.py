"""A portal that runs as its settings say."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from portal.adapters.haproxy.map_files import CANARY
from portal.cli.apply import command, processes
from portal.cli.main import main
from portal.errors import Unavailable
from tests.unit.cli.apply.site import Health, Site, Web, in_process
from tests.unit.web.front import free_ports


@pytest.fixture(scope="module")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `slipway init` makes: state and run."""
    found = Site(tmp_path_factory.mktemp("site"), 20000)
    found.set()
    assert main(["--config", str(found.config), "init"]) == 0
    return found.folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, initialised: Path) -> Iterator[Site]:
    """A portal that runs as its settings say, and whose file of routes is complete."""
    monkeypatch.setattr(processes, "_START_SECONDS", 0.0)
    for module in (command, processes):
        monkeypatch.setattr(module, "run_as_owner", in_process)
    found = Site(tmp_path, free_ports(6))
    # What listens as gunicorn is this process; test_reload_web.py has a real one.
    monkeypatch.setattr(command, "WebReload", lambda _: found)
    found.set()
    found.control()
    for name in ("state", "run"):
        shutil.copytree(initialised / name, tmp_path / name)
    render = ["render", "haproxy", "--output", str(found.haproxy)]
    assert main(["--config", str(found.config), *render]) == 0
    run = tmp_path / "run"
    (run / "routes.map").write_text(f"{CANARY} 1\n")
    web = Web(str(run / "portal.sock"), Health)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    argv = ["haproxy", "-W", "-db", "-q", "-S", str(run / "master.sock"), "-f", str(found.haproxy)]
    process = subprocess.Popen(argv)
    try:
        for _ in range(200):
            with suppress(Unavailable):
                found.process()
                break
            time.sleep(0.05)
        assert found.apply() == 0
        found.asked()
        yield found
    finally:
        process.terminate()
        process.wait()
        web.shutdown()
        web.server_close()

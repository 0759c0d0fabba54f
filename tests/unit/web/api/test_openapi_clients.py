"""Clients generated from the OpenAPI document use a session, from its launch to its end."""

from __future__ import annotations

import importlib
import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from werkzeug.serving import make_server

from portal.client import Client
from portal.web.api import PREFIX
from portal.web.api.openapi import document
from portal.web.app import create_app
from tests.support.fakes import PASSWORDS, World, make_world
from tests.support.paths import ROOT
from tests.unit.web.conftest import LAUNCH, make_settings

NODE = ROOT / "tests" / "clients"
MODULES = NODE / "node_modules"
NAME = "slipway_client"


@pytest.fixture
def url() -> str:
    """The portal's address."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return f"http://localhost:{found.getsockname()[1]}"


@pytest.fixture
def world(tmp_path: Path, url: str) -> World:
    """A portal over fakes."""
    return make_world(make_settings(tmp_path, public_url=url))


@pytest.fixture
def token(world: World, url: str) -> Iterator[str]:
    """A token of alice's at the portal, which answers over HTTP."""
    port = int(url.rpartition(":")[2])
    server = make_server("localhost", port, create_app(world.services), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Client(url).make_token("alice", PASSWORDS["alice"], name="test")
    server.shutdown()
    thread.join()


@pytest.fixture
def described(tmp_path: Path, url: str) -> Path:
    """The API's document, as a file."""
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document(url)))
    return file


def run(*argv: str, folder: Path) -> str:
    """The output of a program that must succeed."""
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.skipif(
    importlib.util.find_spec("openapi_python_client") is None, reason="needs its generator"
)
def test_openapi_python_client(
    world: World, url: str, token: str, described: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = described.parent
    generate = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    generate += ["--path", str(described), "--output-path", str(folder / NAME)]
    (folder / "generator.yml").write_text("post_hooks: []\n")  # which only format the client
    run(*generate, "--config", "generator.yml", "--fail-on-warning", folder=folder)
    monkeypatch.syspath_prepend(str(folder))
    models = importlib.import_module(f"{NAME}.models")
    client = importlib.import_module(f"{NAME}.client").AuthenticatedClient(
        base_url=url + PREFIX, token=token
    )

    def call(operation: str, *args: Any, **named: Any) -> Any:
        module = importlib.import_module(f"{NAME}.api.sessions.{operation}")
        return module.sync(*args, client=client, **named)

    launched = call("launch_sessions", body=models.LaunchRequest.from_dict(LAUNCH))
    (session,) = launched.sessions
    assert isinstance(session, models.Session)
    assert [one.id for one in call("list_sessions").sessions] == [session.id]
    assert call("open_app", session.id, "jupyterlab").url.startswith("http://")
    assert call("end_session", session.id).id == session.id
    stored = world.store.get(session.id)
    assert stored is not None
    assert stored.stop_requested
    wrong = models.LaunchRequest.from_dict(LAUNCH | {"environment": "nothing"})
    problem = call("launch_sessions", body=wrong)
    assert isinstance(problem, models.Problem)
    assert [error.field for error in problem.errors] == ["environment"]


@pytest.mark.skipif(
    shutil.which("node") is None or not MODULES.is_dir(), reason="needs the modules of tests/run.sh"
)
def test_openapi_typescript(
    world: World, url: str, token: str, described: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "typescript"
    folder.mkdir()
    for file in ("client.ts", "process.d.ts", "tsconfig.json", "package.json"):
        shutil.copy(NODE / file, folder)
    (folder / "node_modules").symlink_to(MODULES)
    tools = MODULES / ".bin"
    # Else it takes fields with a default for required ones, in requests too.
    types = [str(described), "--default-non-nullable", "false", "-o", "api.d.ts"]
    run(str(tools / "openapi-typescript"), *types, folder=folder)
    run(str(tools / "tsc"), "--project", ".", folder=folder)
    seen = SimpleNamespace(
        **json.loads(run("node", "client.js", url + PREFIX, token, folder=folder))
    )
    assert seen.listed == [seen.session]
    assert seen.url.startswith("http://")
    assert seen.ended == seen.session
    assert seen.problem == ["environment"]
    stored = world.store.get(seen.session)
    assert stored is not None
    assert stored.stop_requested

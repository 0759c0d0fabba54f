"""JupyterHub's spawner against the portal's real API, over HTTP, with a fake Slurm."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.objects import Hub, Server
from jupyterhub.user import User
from werkzeug.serving import make_server

from portal.client import Client
from portal.hub.authenticator import TOKEN
from portal.hub.spawner import SlipwaySpawner
from portal.web.app import create_app
from tests.support.fakes import PASSWORDS, World, make_world
from tests.unit.web.conftest import make_settings

SERVERS = "http://portal.example.org:8090"


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def url() -> str:
    """The portal's address."""
    return f"http://localhost:{free_port()}"


@pytest.fixture
def world(tmp_path: Path, url: str) -> World:
    """A portal over fakes."""
    return make_world(make_settings(tmp_path, public_url=url))


@pytest.fixture
def portal(world: World, url: str) -> Iterator[str]:
    """Its web application, over HTTP."""
    server = make_server("127.0.0.1", int(url.rpartition(":")[2]), create_app(world.services), True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield url
    server.shutdown()
    thread.join()


@pytest.fixture
def client(portal: str) -> Client:
    """The portal's client with a token of alice's."""
    stranger = Client(portal)
    return Client(portal, stranger.make_token("alice", PASSWORDS["alice"], name="test"))


NewSpawner = Callable[..., SlipwaySpawner]


@pytest.fixture
def spawner(portal: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> NewSpawner:
    """Makes spawners of one user, each as JupyterHub does after a start."""
    db: Any = orm.new_session_factory("sqlite:///:memory:")()
    token = client._headers["Authorization"].removeprefix("Bearer ")

    async def auth_state(_user: User) -> dict[str, str]:
        return {TOKEN: token}

    monkeypatch.setattr(User, "get_auth_state", auth_state)

    def make(name: str = "alice", server: str = "", **changes: Any) -> SlipwaySpawner:
        known = db.query(orm.User).filter_by(name=name).first() or orm.User(name=name)
        db.add(known)
        db.commit()
        settings = {"portal_url": portal, "servers_url": SERVERS, "pause": 0.1} | changes
        user = User(known, {})
        made: SlipwaySpawner = user._new_spawner(
            server, spawner_class=SlipwaySpawner, hub=Hub(), user=user, **settings
        )
        made.api_token = "secret1"
        place = orm.Server(base_url=made.prefix)
        db.add(place)
        db.commit()
        made.server = Server(orm_server=place)
        return made

    return make

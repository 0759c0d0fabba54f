"""Queries of the catalogue about a session's apps."""

from __future__ import annotations

import pytest

from portal.core.apps.catalog import AppSpec, Catalog, Image
from portal.core.session.session import Session
from tests.support.fakes import CATALOG, World
from tests.support.sessions import ALICE, REQUEST

SSH = AppSpec(name="ssh", title="SSH", kind="ssh", script="sshd")


@pytest.fixture
def session(world: World) -> Session:
    """Alice's session of Python 3.13, whose image has not been inspected."""
    return world.launch(ALICE, REQUEST)


def test_which_process_serves_an_app() -> None:
    assert CATALOG.server_of("notebook") == "jupyterlab"
    assert CATALOG.server_of("jupyterlab") == "jupyterlab"
    assert CATALOG.server_of("removed") == "removed"


def test_how_users_connect_to_an_app() -> None:
    catalog = CATALOG.model_copy(update={"apps": {**CATALOG.apps, "ssh": SSH}})
    assert [catalog.kind_of(app) for app in ("ssh", "terminal", "removed")] == ["ssh", "web", "web"]


def test_a_session_offers_the_apps_found_in_its_image(session: Session) -> None:
    def names(session: Session) -> list[str]:
        return [spec.name for spec in CATALOG.offered(session)]

    assert names(session) == ["jupyterlab", "notebook", "terminal", "board", "any"]
    found = session.model_copy(update={"apps": ("jupyterlab", "notebook", "terminal")})
    assert names(found) == ["jupyterlab", "notebook", "terminal"]
    assert names(session.model_copy(update={"apps": ("notebook",)})) == []


def test_a_removed_image_offers_the_apps_found_by_its_session(session: Session) -> None:
    empty = Catalog(apps=CATALOG.apps, images=())
    assert empty.offered(session) == []
    found = session.model_copy(update={"apps": ("terminal",)})
    assert [spec.name for spec in empty.offered(found)] == ["terminal"]
    other = Image(environment="debian", version="13", path="/x.sif", title="Debian")
    assert Catalog(apps=CATALOG.apps, images=(other,)).offered(session) == []

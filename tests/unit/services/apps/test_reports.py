"""What runners report about their image."""

from __future__ import annotations

import pytest

from portal.config import Settings
from portal.config.images import ImageSettings
from portal.core.auth.person import Person
from portal.core.launch.request import parse_launch
from tests.support.fakes import World, make_world


@pytest.fixture
def world(settings: Settings) -> World:
    return make_world(settings.model_copy(update={"images": ImageSettings(own="files")}))


def test_an_own_image_says_nothing_about_other_sessions(world: World) -> None:
    body = {"image": "images/a.sif", "resources": {"memory": "600m"}}
    admin = Person("admin", True, "a")
    session = world.launch(admin, parse_launch(body))
    assert world.reports.note_image(session, ["terminal", "board"]) == ("terminal", "board")
    assert world.access_store.image_apps() == {}

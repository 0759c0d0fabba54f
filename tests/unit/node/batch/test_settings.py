"""Which files of the site's a user may not start as own images."""

from __future__ import annotations

from typing import Any

from portal.node.batch.settings import Settings
from tests.unit.node.batch.conftest import site

ONE, TWO, THREE = "11" * 16, "22" * 16, "33" * 16


def image(version: str, id: str, **rule: Any) -> dict[str, Any]:
    """An image as the settings have it."""
    path = f"/i/r/{version}/image.sif"
    files = [[path, id], [f"{path}.old", ""]]
    return {"environment": "r", "version": version, "path": path, "files": files, **rule}


def refused(settings: Settings, user: str, *, retired: bool = True) -> list[tuple[str, str, str]]:
    found = settings.refused_files(user, retired=retired)
    return [(file.path, file.id, file.reason) for file in found]


def test_files_of_hidden_and_of_retired_images() -> None:
    images = [image("3", ONE), image("2", TWO, visible_to=["bob"])]
    settings = Settings(site(images=images, retired=[image("1", THREE)]))
    hidden = "it is not offered to you"
    old = "r 1 was retired by an administrator"
    two = [("/i/r/2/image.sif", TWO, hidden), ("/i/r/2/image.sif.old", "", hidden)]
    three = [("/i/r/1/image.sif", THREE, old), ("/i/r/1/image.sif.old", "", old)]
    assert refused(settings, "alice") == two + three
    assert refused(settings, "alice", retired=False) == two
    assert refused(settings, "bob") == three


def test_a_retired_image_stays_hidden() -> None:
    settings = Settings(site(images=[], retired=[image("1", THREE, hidden_from=["alice"])]))
    assert [path for path, *_ in refused(settings, "alice", retired=False)] == [
        "/i/r/1/image.sif",
        "/i/r/1/image.sif.old",
    ]
    assert refused(settings, "bob", retired=False) == []


def test_an_image_whose_description_is_invalid_stays_hidden() -> None:
    images, left_out = [image("3", ONE)], [image("2", TWO, visible_to=["bob"])]
    settings = Settings(site(images=images, left_out=left_out))
    hidden = "it is not offered to you"
    two = [("/i/r/2/image.sif", TWO, hidden), ("/i/r/2/image.sif.old", "", hidden)]
    assert refused(settings, "alice") == two
    assert refused(settings, "bob") == []


def test_what_a_permitted_image_contains_as_well_is_not_refused() -> None:
    settings = Settings(site(images=[image("2", ONE, visible_to=[]), image("1", ONE)]))
    assert [path for path, *_ in refused(settings, "alice")] == ["/i/r/2/image.sif.old"]


def test_settings_of_an_earlier_portal_name_no_files() -> None:
    assert refused(Settings(site()), "alice") == []

"""The defaults of a new launch form."""

from __future__ import annotations

from portal.core.apps.catalog import Catalog, Image
from portal.web.pages.launch.form import first_values


def image(environment: str, version: str, *, default: bool = False) -> Image:
    """An image without any app."""
    path = f"/images/{environment}/{version}/image.sif"
    return Image(
        environment=environment, version=version, path=path, title="", apps=(), default=default
    )


def test_the_default_image_is_proposed_whatever_its_position() -> None:
    images = (image("debian", "13"), image("python", "3.14"), image("python", "3.13", default=True))
    values = first_values(Catalog(apps={}, images=images))
    assert (values["environment"], values["version"]) == ("python", "3.13")


def test_without_images_nothing_is_proposed() -> None:
    values = first_values(Catalog(apps={}, images=()))
    assert (values["environment"], values["version"]) == ("", "")

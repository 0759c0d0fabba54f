"""How pages name environments and versions."""

from __future__ import annotations

import pytest

from portal.core.apps.catalog import Catalog, Image


def image(environment: str, version: str, title: str, **more: str) -> Image:
    """An image with a title."""
    return Image.model_validate(
        {"environment": environment, "version": version, "path": "/x.sif", "title": title} | more
    )


@pytest.mark.parametrize(
    ("titles", "environment", "labels"),
    [
        ({"3.13": "Python 3.13", "3.11": "Python 3.11"}, "Python", ["3.13", "3.11"]),
        ({"gcc12": "C++ (GCC 12)", "gcc10": "C++ (GCC 10)"}, "C++", ["GCC 12", "GCC 10"]),
        ({"gcc10": "C++ (GCC 10)"}, "C++", ["GCC 10"]),
        ({"2.8": "TensorFlow 2.8"}, "TensorFlow", ["2.8"]),
        ({"1.37": "BusyBox"}, "BusyBox", ["1.37"]),
        ({"2": "Tools", "1": "Tools"}, "Tools", ["2", "1"]),
        ({"b": "PyTorch", "a": "TensorFlow"}, "env", ["b", "a"]),
        ({"1": ""}, "env", ["1"]),
    ],
)
def test_the_environment_is_what_its_titles_have_in_common(
    titles: dict[str, str], environment: str, labels: list[str]
) -> None:
    images = [image("env", version, title) for version, title in titles.items()]
    catalog = Catalog(apps={}, images=tuple(images))
    found = [catalog.naming("env", version) for version in titles]
    assert {naming.environment for naming in found} == {environment}
    assert [naming.version for naming in found] == labels


def test_a_file_may_name_the_environment() -> None:
    images = (
        image("ml", "b", "PyTorch 2.4", environment_title="Learning"),
        image("ml", "a", "JAX"),
    )
    catalog = Catalog(apps={}, images=images)
    assert catalog.environment_title("ml") == "Learning"
    assert catalog.naming("ml", "b").full == "PyTorch 2.4 b"


def test_a_full_title_contains_the_version_once() -> None:
    images = (image("py", "3.13", "Python 3.13"), image("busybox", "1.37", "BusyBox"))
    catalog = Catalog(apps={}, images=images)
    assert catalog.naming("py", "3.13").full == "Python 3.13"
    assert catalog.naming("busybox", "1.37").full == "BusyBox 1.37"


def test_deleted_versions_and_environments_still_have_a_name() -> None:
    catalog = Catalog(apps={}, images=(image("py", "3.13", "Python 3.13"),))
    assert catalog.naming("py", "3.9").full == "Python 3.9"
    assert catalog.naming("cobol", "85").full == "cobol 85"

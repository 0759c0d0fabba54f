"""Descriptions of apps and images; a wrong one is named and left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.adapters.catalog import CatalogError, FolderCatalog, read_app, read_image

ROOT = Path(__file__).parents[3]


def app(folder: Path, name: str, toml: str, script: str | None = "exec true\n") -> Path:
    """An app's folder."""
    (folder / name).mkdir(parents=True)
    (folder / name / "app.toml").write_text(toml)
    if script is not None:
        (folder / name / "start.sh").write_text(script)
    return folder / name


@pytest.mark.parametrize(
    ("toml", "script", "word"),
    [
        ("title = ", "x", "app.toml"),
        ("icon = 'box'", "x", "title"),
        ("title = 'A'\npath = 'lab'", "x", "path"),
        ("title = 'A'\ntimeout = 0", "x", "timeout"),
        ("title = 'A'\ncolour = 'red'", "x", "colour"),
        ("title = 'A'", None, "start.sh"),
    ],
)
def test_a_wrong_app_is_refused_with_the_reason(
    tmp_path: Path, toml: str, script: str | None, word: str
) -> None:
    with pytest.raises(CatalogError, match=word):
        read_app(app(tmp_path, "thing", toml, script))


def test_a_wrong_one_does_not_hide_the_others(tmp_path: Path) -> None:
    app(tmp_path / "apps", "good", "title = 'Good'")
    app(tmp_path / "apps", "bad", "title = ")
    for version in ("3.9", "3.13"):
        folder = tmp_path / "images" / "python" / version
        folder.mkdir(parents=True)
        (folder / "image.sif").touch()
        (folder / "image.toml").write_text("title = 'Python'\napps = ['good']")
    catalog = FolderCatalog(str(tmp_path / "apps"), str(tmp_path / "images"))()
    assert set(catalog.apps) == {"good"}
    assert [image.version for image in catalog.images] == ["3.13", "3.9"]  # newest first
    newest = catalog.image("python", None)
    assert newest is not None
    assert newest.version == "3.13"


def image(folder: Path, environment: str, version: str, toml: str = "") -> None:
    """An image's folder."""
    place = folder / "images" / environment / version
    place.mkdir(parents=True)
    (place / "image.sif").touch()
    (place / "image.toml").write_text(f"title = '{environment}'\napps = []\n{toml}")


def test_the_image_marked_as_default_is_proposed(tmp_path: Path) -> None:
    image(tmp_path, "debian", "13")
    image(tmp_path, "python", "3.14")
    image(tmp_path, "python", "3.13", "default = true")
    catalog = FolderCatalog(str(tmp_path / "apps"), str(tmp_path / "images"))()
    assert catalog.proposed is not None
    assert (catalog.proposed.environment, catalog.proposed.version) == ("python", "3.13")
    found = [(image.environment, image.version) for image in catalog.images]
    assert found == [("debian", "13"), ("python", "3.14"), ("python", "3.13")]


def test_without_a_mark_the_first_is_proposed(tmp_path: Path) -> None:
    nothing = FolderCatalog(str(tmp_path / "apps"), str(tmp_path / "images"))()
    assert nothing.proposed is None
    image(tmp_path, "python", "3.9")
    image(tmp_path, "python", "3.13")
    catalog = FolderCatalog(str(tmp_path / "apps"), str(tmp_path / "images"))()
    assert catalog.proposed is not None
    assert catalog.proposed.version == "3.13"


def test_exactly_one_of_our_own_images_is_the_default() -> None:
    images = [read_image(file.parent) for file in (ROOT / "images").glob("*/*/image.toml")]
    assert [(i.environment, i.version) for i in images if i.default] == [("python", "3.13")]


@pytest.mark.parametrize("folder", sorted((ROOT / "apps").glob("*/")), ids=lambda f: f.name)
def test_our_own_apps(folder: Path) -> None:
    assert read_app(folder).title


@pytest.mark.parametrize("file", sorted((ROOT / "images").glob("*/*/image.toml")), ids=str)
def test_our_own_images(file: Path) -> None:
    image = read_image(file.parent)
    known = {folder.name for folder in (ROOT / "apps").iterdir()}
    assert set(image.apps) <= known

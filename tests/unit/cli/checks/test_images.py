"""Hidden images that everybody may read, and folders of own images that overlap the site's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.adapters.catalog import FolderCatalog
from portal.cli.checks.images import check_image_files
from portal.config import Settings
from portal.core.admin.images import ImageRule, SeenBy
from tests.support.sif import sif


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name).resolve()


@pytest.fixture
def images(place: Path) -> Path:
    """The site's images: tool/1."""
    folder = place / "images" / "tool" / "1"
    folder.mkdir(parents=True)
    (folder / "image.toml").write_text('title = "Tool 1"\n')
    (folder / "image-0123456789abcdef.sif").write_bytes(sif(b"x"))
    (folder / "image.sif").symlink_to("image-0123456789abcdef.sif")
    (folder / "image-0123456789abcdef.sif").chmod(0o644)
    return place / "images"


def said(images: Path, *folders: Path, own: str = "files", seen_by: SeenBy = "everybody") -> str:
    named = {"own": own, "folders": [str(folder) for folder in folders]}
    settings = Settings.model_validate({"sessions": {"images": str(images)}, "images": named})
    rule = ImageRule(environment="tool", version="1", seen_by=seen_by)
    found = list(check_image_files(settings, FolderCatalog((), str(images))(), [rule]))
    assert {finding.word for finding in found} <= {"WARNING"}
    return "\n".join(finding.text for finding in found)


def test_folders_that_overlap_are_named_however_they_are_named(place: Path, images: Path) -> None:
    (place / "link").symlink_to(images)
    (place / "other").mkdir()
    beside = place / "images2"
    beside.mkdir()
    for folder in (images, place, images / "tool", place / "link", place / "link" / "tool"):
        assert said(images, folder).startswith(f"images.folders: {folder} overlaps sessions.images")
    assert said(images, place / "other", beside, place / "missing") == ""
    assert said(images, images, own="off") == ""


@pytest.mark.parametrize("retired", [False, True])
def test_a_hidden_image_that_everybody_may_read(images: Path, retired: bool) -> None:
    if retired:
        (images / "tool/1/retired").touch()
    text = said(images, seen_by="nobody")
    assert text.startswith("tool 1 is shown to nobody, but every user of the nodes may read ")
    assert f"{images}/tool/1/image-0123456789abcdef.sif, and what" in text
    assert said(images) == ""


def test_permissions_of_a_folder_or_of_all_files_protect_it(images: Path) -> None:
    folder = images / "tool" / "1"
    for closed in (folder, folder.parent, images):
        closed.chmod(0o750)
        assert said(images, seen_by="nobody") == ""
        closed.chmod(0o755)
    (folder / "image-0123456789abcdef.sif").chmod(0o640)
    assert said(images, seen_by="nobody") == ""
    (folder / "image-0000000000000000.sif").write_bytes(sif(b"old"))
    (folder / "image-0000000000000000.sif").chmod(0o644)
    assert "may read" in said(images, seen_by="nobody")

"""The site's folder of images."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.adapters.images.folder import FolderImages, current_file, read_inventory
from portal.core.images.inventory import Contents, Inventory
from portal.core.images.names import ImageError, ImageName
from portal.core.images.use import Removal
from tests.support.sif import sif

NAME = ImageName("r", "4.5")
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
CONTENTS = Contents(environment="r", version="4.5", title="R", sources="ab", origin="Debian trixie")


@pytest.fixture
def images(tmp_path: Path) -> FolderImages:
    return FolderImages(tmp_path / "images")


def install(images: FolderImages, tmp_path: Path, content: bytes) -> Inventory:
    """Install an image with this file system."""
    draft = tmp_path / "draft.sif"
    draft.write_bytes(sif(content))
    with images.lock(NAME):
        images.describe(NAME, 'title = "R 4.5"\n')
        return images.install(NAME, draft, CONTENTS, "1.4.5", NOW)


def test_an_image_is_installed_with_its_inventory(images: FolderImages, tmp_path: Path) -> None:
    installed = install(images, tmp_path, b"one")
    folder = tmp_path / "images/r/4.5"
    assert os.readlink(folder / "image.sif") == installed.file
    assert read_inventory(current_file(folder)) == installed
    assert (folder / installed.file).stat().st_mode & 0o777 == 0o644
    (image,) = images.all()
    assert (image.name, image.title, image.inventory, image.retired) == (
        NAME,
        "R 4.5",
        installed,
        None,
    )
    assert [file.current for file in image.files] == [True]
    assert images.file(NAME) == folder / installed.file


def test_a_replaced_file_stays_until_it_is_removed(images: FolderImages, tmp_path: Path) -> None:
    first, second = install(images, tmp_path, b"one"), install(images, tmp_path, b"two")
    assert first.file != second.file
    image = images.get(NAME)
    assert {file.name: file.current for file in image.files} == {
        first.file: False,
        second.file: True,
    }
    images.remove(Removal(image, tuple(file for file in image.files if not file.current)))
    assert {path.name for path in (tmp_path / "images/r/4.5").iterdir()} == {
        ".lock", "image.sif", "image.toml", second.file, second.file.replace(".sif", ".json"),
    }  # fmt: skip


def test_the_same_content_is_not_stored_twice(images: FolderImages, tmp_path: Path) -> None:
    first = install(images, tmp_path, b"one")
    file = images.file(NAME)
    before = file.stat()
    assert install(images, tmp_path, b"one").file == first.file
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_of_an_older_release_keeps_its_content(images: FolderImages, tmp_path: Path) -> None:
    folder = tmp_path / "images/r/4.5"
    folder.mkdir(parents=True)
    (folder / "image.sif").write_bytes(sif(b"old"))
    inode = (folder / "image.sif").stat().st_ino
    assert current_file(folder) == folder / "image.sif"
    install(images, tmp_path, b"new")
    (old,) = [file for file in images.get(NAME).files if not file.current]
    assert (folder / old.name).stat().st_ino == inode


def test_only_links_to_files_beside_are_followed(tmp_path: Path) -> None:
    for target in ("../x.sif", "/etc/passwd", "other.sif"):
        (tmp_path / "image.sif").unlink(missing_ok=True)
        (tmp_path / "image.sif").symlink_to(target)
        assert current_file(tmp_path) == tmp_path / "image.sif"


def test_what_crashes_leave_is_removed_and_never_shown(
    images: FolderImages, tmp_path: Path
) -> None:
    install(images, tmp_path, b"one")
    draft = tmp_path / "images/r/4.5/.image-0123456789abcdef.sif.new"
    draft.touch()
    assert len(images.get(NAME).files) == 1
    with images.lock(NAME):
        assert not draft.exists()


def test_only_one_process_builds_an_image(images: FolderImages) -> None:
    with images.lock(NAME), pytest.raises(ImageError, match="another process"), images.lock(NAME):
        pass
    with images.lock(NAME), images.lock(ImageName("r", "4.4")):
        pass


def test_a_refused_process_leaves_the_folder_to_the_first_build(
    images: FolderImages, tmp_path: Path
) -> None:
    with images.lock(NAME):
        with pytest.raises(ImageError, match="another process"), images.lock(NAME):
            pass
        images.describe(NAME, 'title = "R 4.5"\n')
        with pytest.raises(ImageError, match="another process"), images.lock(NAME):
            pass
    assert (tmp_path / "images/r/4.5/image.toml").read_text() == 'title = "R 4.5"\n'


def test_a_failed_first_build_leaves_no_folder(images: FolderImages, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="broken"), images.lock(NAME):
        raise ImageError("broken")
    assert list((tmp_path / "images").iterdir()) == []


def test_retiring_and_removing_an_image(images: FolderImages, tmp_path: Path) -> None:
    install(images, tmp_path, b"one")
    images.retire(NAME, NOW)
    image = images.get(NAME)
    assert image.retired is not None
    images.retire(NAME, None)
    assert images.get(NAME).retired is None
    with images.lock(NAME):
        images.remove(Removal(image, image.files, entire_image=True))
    assert images.all() == []
    assert not (tmp_path / "images/r").exists()


def test_errors_name_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ImageError, match="file"), FolderImages(tmp_path / "file").lock(NAME):
        pass
    with pytest.raises(ImageError, match=r"there is no image r/4\.5"):
        FolderImages(tmp_path).get(NAME)


def test_who_may_not_write_is_told_so(
    images: FolderImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    advice = "lock: Permission denied; run this as an account that may write there"
    with pytest.raises(ImageError, match=advice), images.lock(NAME):
        pass

"""Image files of people: inside their folder, and what was checked is what runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.node.batch.image import ImageError
from portal.node.batch.image.files import open_file
from tests.unit.node.batch.image.conftest import make_sif


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "images"
    found.mkdir()
    (found / "a.sif").write_bytes(make_sif())
    (tmp_path / "out.sif").write_bytes(make_sif())
    return found


def refusal(folder: Path, name: str) -> str:
    with pytest.raises(ImageError) as error:
        os.close(open_file(str(folder), name, 1))
    return str(error.value)


def test_the_descriptor_is_the_checked_file_after_an_exchange(folder: Path) -> None:
    descriptor = open_file(str(folder), "a.sif", 1)
    (folder / "b.sif").write_bytes(b"evil")
    (folder / "b.sif").replace(folder / "a.sif")
    assert Path(f"/proc/self/fd/{descriptor}").read_bytes() == make_sif()
    os.close(descriptor)


def test_links_inside_the_folder_and_to_the_folder_are_followed(folder: Path) -> None:
    (folder / "link.sif").symlink_to("a.sif")
    place = folder.with_name("link")
    place.symlink_to(folder)
    for base, name in ((folder, "link.sif"), (place, "a.sif")):
        os.close(open_file(str(base), name, 1))


def test_links_out_of_the_folder_are_refused(folder: Path) -> None:
    (folder / "out.sif").symlink_to("../out.sif")
    (folder / "up").symlink_to("..")
    for name in ("out.sif", "up/out.sif"):
        text = refusal(folder, name)
        assert text.startswith(f"images/{name} is a link that leads out of its folder")


def test_a_folder_beside_with_the_same_beginning_is_outside(folder: Path) -> None:
    other = folder.with_name("images2")
    other.mkdir()
    (other / "a.sif").write_bytes(make_sif())
    (folder / "x.sif").symlink_to(other / "a.sif")
    assert "leads out of its folder" in refusal(folder, "x.sif")


def test_what_is_no_file_is_refused_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe.sif")
    (folder / "dir.sif").mkdir()
    (folder / "loop.sif").symlink_to("loop.sif")
    assert refusal(folder, "pipe.sif") == "images/pipe.sif is not a file"
    assert refusal(folder, "dir.sif") == "images/dir.sif is not a file"
    assert refusal(folder, "loop.sif") == "images/loop.sif is a link that leads to itself"
    assert refusal(folder, "none.sif") == "there is no file images/none.sif"

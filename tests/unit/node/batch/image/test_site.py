"""The site's images are recognised by device and inode, and by the id in their header."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from portal.node.batch.image import ImageError
from portal.node.batch.image.site import SiteFile, check
from tests.unit.node.batch.image.conftest import make_sif

ID = b"h" * 16


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    file = tmp_path / "hidden.sif"
    file.write_bytes(make_sif(id=ID))
    return file


def is_refused(file: Path, *refused: SiteFile) -> bool:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        check(descriptor, "mine.sif", refused)
    except ImageError as error:
        assert str(error) == "mine.sif is one of the site's images: it is hidden"
        return True
    finally:
        os.close(descriptor)
    return False


def test_the_same_file_without_a_known_id(hidden: Path) -> None:
    known = SiteFile(str(hidden), "", "it is hidden")
    link, hard, copy = (hidden.with_name(name) for name in ("link", "hard", "copy"))
    link.symlink_to(hidden)
    hard.hardlink_to(hidden)
    shutil.copyfile(hidden, copy)
    assert [is_refused(one, known) for one in (hidden, link, hard, copy)] == [True] * 3 + [False]


def test_a_copy_of_a_file_that_is_not_there(hidden: Path) -> None:
    assert is_refused(hidden, SiteFile("/nowhere/image.sif", ID.hex(), "it is hidden"))


def test_other_images_and_a_header_that_was_changed(hidden: Path) -> None:
    known = SiteFile("/nowhere/image.sif", ID.hex(), "it is hidden")
    other = hidden.with_name("other")
    for id in (b"o" * 16, bytes(16)):
        other.write_bytes(make_sif(id=id))
        assert not is_refused(other, known)
        assert not is_refused(other, SiteFile("/nowhere/image.sif", "", "it is hidden"))


def test_a_path_that_nobody_may_look_at_hides_no_other_reason(hidden: Path) -> None:
    loop = hidden.with_name("loop")
    loop.symlink_to(loop)
    broken = SiteFile(str(loop), "", "it is hidden")
    assert not is_refused(hidden, broken)
    assert is_refused(hidden, broken, SiteFile(str(hidden), "", "it is hidden"))

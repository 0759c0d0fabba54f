"""The ids of the site's image files: from headers, or from inventories, and read once."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.adapters.images import ids
from portal.adapters.images.ids import SifFiles
from portal.core.images.inventory import Inventory, file_name, inventory_name
from portal.core.images.sif import id_of_header, without_times
from portal.core.launch.site_files import SifFile
from portal.node.common.sif import HEADER
from tests.support.sif import sif

OLD, NEW = b"o" * 16, b"n" * 16
DIGEST = "ab12" * 16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An image whose file was replaced once."""
    (tmp_path / "image-0000000000000001.sif").write_bytes(sif(b"old", id=OLD))
    (tmp_path / "image-0000000000000002.sif").write_bytes(sif(b"new", id=NEW))
    (tmp_path / "image.sif").symlink_to("image-0000000000000002.sif")
    return tmp_path


def test_all_files_of_an_image_with_their_ids(folder: Path) -> None:
    assert SifFiles()(folder) == (
        SifFile(f"{folder}/image-0000000000000001.sif", OLD.hex()),
        SifFile(f"{folder}/image-0000000000000002.sif", NEW.hex()),
        SifFile(f"{folder}/image.sif", NEW.hex()),
    )


def test_a_header_is_read_again_only_when_the_file_has_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def note(file: Path) -> str:
        read.append(file)
        return "id"

    monkeypatch.setattr(ids, "_id", note)
    files = SifFiles()
    files(folder)
    files(folder)
    assert len(read) == 3
    (folder / "image-0000000000000001.sif").chmod(0o600)
    files(folder)
    assert len(read) == 4


def test_what_is_no_image_has_no_id_and_nobody_waits_for_it(folder: Path) -> None:
    os.mkfifo(folder / "a.sif")
    (folder / "b.sif").write_bytes(b"x" * 1000)
    (folder / "c.sif").symlink_to("c.sif")
    (folder / "d.sif").write_bytes(sif(b"d", id=bytes(16)))
    found = {Path(file.path).name: file.id for file in SifFiles()(folder)}
    assert [found[name] for name in ("a.sif", "b.sif", "c.sif", "d.sif")] == [""] * 4


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """An image that `slipway images build` has made: its file, with an inventory."""
    built = tmp_path / file_name(DIGEST)
    built.write_bytes(without_times(sif(b"x"), DIGEST, 0))
    (tmp_path / "image.sif").symlink_to(built.name)
    inventory = Inventory(
        environment="r", version="4", title="R 4", sources="", origin="", digest=DIGEST, size=1,
        built=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    built.with_name(inventory_name(built.name)).write_text(inventory.model_dump_json())
    return built


@pytest.mark.parametrize("call", ["open", "pread"])
def test_a_file_that_the_portal_cannot_read_has_the_id_of_its_inventory(
    built: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = id_of_header(built.read_bytes()[: HEADER.size])
    fail(monkeypatch, call, errno.EACCES)  # root, who runs tests, may read everything
    assert {file.id for file in SifFiles()(built.parent)} == {id}


def fail(monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    """Let a function of os fail, as on a file system with an error."""

    def failing(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, failing)


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
@pytest.mark.parametrize("call", ["fstat", "pread"])
def test_an_id_that_could_not_be_read_is_read_again(
    folder: Path, call: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SifFiles()
    with monkeypatch.context() as patch:
        fail(patch, call, number)
        assert {file.id for file in files(folder)} == {""}
    assert {file.id for file in files(folder)} == {OLD.hex(), NEW.hex()}


@pytest.mark.parametrize("call", ["stat", "scandir"])
def test_what_is_known_of_files_stays_while_the_file_system_fails(
    folder: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SifFiles()
    known = files(folder)
    with monkeypatch.context() as patch:
        fail(patch, call, errno.ESTALE)
        assert files(folder) == known

"""The site's folder of images.

`image.sif` is a link to `image-<digest>.sif`, the file that jobs get; replacing the link makes a
new image current atomically. The inventory is stored next to the file, with the same digest.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from portal.adapters.images.sif_file import digest_of
from portal.core.images.inventory import Contents, Inventory, file_name, inventory_name
from portal.core.images.names import ImageError, ImageName
from portal.core.images.use import Removal, StoredFile, StoredImage
from portal.core.interfaces.images import ImageStore

LINK, DESCRIPTION, RETIRED = "image.sif", "image.toml", "retired"
_FILE_NAME = re.compile(r"image-[0-9a-f]{16}\.sif")
_TITLE = re.compile(r'^title\s*=\s*"([^"\n]*)"', re.MULTILINE)


def current_file(folder: Path) -> Path:
    """The target of image.sif, which remains when the image is replaced."""
    link = folder / LINK
    try:
        target = os.readlink(link)
    except OSError:
        return link
    return folder / target if _FILE_NAME.fullmatch(target) else link


def read_inventory(file: Path) -> Inventory | None:
    """The inventory stored next to an image's file; None if it is missing or unreadable."""
    try:
        text = file.with_name(inventory_name(file.name)).read_text(encoding="utf-8")
        return Inventory.model_validate_json(text)
    except (OSError, ValidationError, UnicodeDecodeError):
        return None


class FolderImages(ImageStore):
    """Images in <folder>/<environment>/<version>/."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def lock(self, name: ImageName) -> Iterator[None]:
        folder = self._folder_of(name)
        with _as_image_error(folder):
            folder.mkdir(parents=True, exist_ok=True)
            lock = folder / ".lock"
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ImageError(
                    f"{name} is being built or deleted by another process; wait for it"
                ) from error
            if not os.fstat(descriptor).st_nlink:
                raise ImageError(f"{name} was being deleted; run the command again")
            try:
                for draft in folder.glob(".*.new"):
                    draft.unlink()  # left by a build that crashed
                yield
            finally:
                _remove_unused(folder)  # with the lock: it must not remove another process's folder
        finally:
            os.close(descriptor)

    def all(self) -> list[StoredImage]:
        folders = {link.parent for link in self._folder.glob(f"[!.]*/[!.]*/{LINK}")}
        return [self._read(folder) for folder in sorted(folders)]

    def get(self, name: ImageName) -> StoredImage:
        folder = self._folder_of(name)
        if not (folder / LINK).is_symlink() and not (folder / LINK).exists():
            raise ImageError(f"there is no image {name} in {self._folder}")
        return self._read(folder)

    def file(self, name: ImageName) -> Path:
        self.get(name)
        return current_file(self._folder_of(name))

    def install(
        self, name: ImageName, file: Path, contents: Contents, apptainer: str, now: datetime
    ) -> Inventory:
        folder = self._folder_of(name)
        with _as_image_error(folder):
            self._name_by_digest(folder)
            digest = digest_of(file)
            target = folder / file_name(digest)
            if not target.exists():
                draft = folder / f".{target.name}.new"
                shutil.copyfile(file, draft)
                _publish(draft, target)
            inventory = Inventory(
                **contents.model_dump(), digest=digest, size=target.stat().st_size,
                built=now, apptainer=apptainer,
            )  # fmt: skip
            _write(folder / inventory_name(target.name), inventory.model_dump_json(indent=1))
            if current_file(folder) != target:
                draft = folder / f".{LINK}.new"
                draft.unlink(missing_ok=True)
                draft.symlink_to(target.name)
                os.replace(draft, folder / LINK)
        return inventory

    def describe(self, name: ImageName, text: str) -> None:
        file = self._folder_of(name) / DESCRIPTION
        with _as_image_error(file):
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                _write(file, text)

    def retire(self, name: ImageName, when: datetime | None) -> None:
        mark = self._folder_of(name) / RETIRED
        with _as_image_error(mark):
            if when is None:
                mark.unlink(missing_ok=True)
            else:
                _write(mark, f"{when.isoformat()}\n")

    def remove(self, removal: Removal) -> None:
        folder = self._folder_of(removal.image.name)
        with _as_image_error(folder):
            if removal.entire_image:
                # The link first: without it the folder is not an image, even after a crash here.
                (folder / LINK).unlink(missing_ok=True)
            for file in removal.files:
                (folder / file.name).unlink(missing_ok=True)
                (folder / inventory_name(file.name)).unlink(missing_ok=True)
            if removal.entire_image:
                for name in (DESCRIPTION, RETIRED):
                    (folder / name).unlink(missing_ok=True)

    def _read(self, folder: Path) -> StoredImage:
        current = current_file(folder)
        files = folder.glob("image-*.sif")
        names = {path.name for path in files if _FILE_NAME.fullmatch(path.name)}
        try:
            description = (folder / DESCRIPTION).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            description = ""
        title = _TITLE.search(description)
        return StoredImage(
            name=ImageName(folder.parent.name, folder.name),
            title=title[1] if title else folder.parent.name,
            files=tuple(
                StoredFile(name, _size(folder / name), name == current.name)
                for name in sorted(names | {current.name})
            ),
            changed=_modified(folder / LINK),
            inventory=read_inventory(current),
            retired=_modified(folder / RETIRED) if (folder / RETIRED).exists() else None,
        )

    def _folder_of(self, name: ImageName) -> Path:
        return self._folder / name.environment / name.version

    def _name_by_digest(self, folder: Path) -> None:
        """Link a regular file image.sif to its digest name, so that jobs that read it keep it."""
        link = folder / LINK
        if link.is_symlink() or not link.exists():
            return
        try:
            target = folder / file_name(digest_of(link))
        except ImageError:
            return  # not a SIF file: nothing can run it
        if not target.exists():
            os.link(link, target)


@contextmanager
def _as_image_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        denied = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        advice = "; run this as an account that may write there" if denied else ""
        raise ImageError(f"{error.filename or path}: {error.strerror}{advice}") from error


def _publish(draft: Path, target: Path) -> None:
    """Flush a complete file to the disk, then rename it to its target."""
    draft.chmod(0o644)
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(draft, target)


def _write(file: Path, text: str) -> None:
    draft = file.with_name(f".{file.name}.new")
    draft.write_text(text, encoding="utf-8")
    _publish(draft, file)


def _remove_unused(folder: Path) -> None:
    """Delete the folder and lock of an image that was never installed, or was deleted."""
    if not folder.is_dir() or any(path.name != ".lock" for path in folder.iterdir()):
        return
    try:
        (folder / ".lock").unlink(missing_ok=True)
        folder.rmdir()
        folder.parent.rmdir()
    except OSError:
        return  # other versions exist, or another process has started


def _modified(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    except OSError:
        return datetime.fromtimestamp(0, UTC)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0

"""Persistent folders: lists those that a user can mount, lists images in them, creates new ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from portal.core.auth.person import Person
from portal.core.files.shares import READ, SharedFolder
from portal.core.interfaces.systems import UserFiles
from portal.core.launch.mounts import Folder, Mount, path_of_shared
from portal.core.launch.own_image import IMAGE, ImageFile, OwnImageRules, proposable
from portal.core.launch.site_files import RefusedFile
from portal.errors import FieldError, InvalidRequest
from portal.node.common.folder_name import HOME, name_problem
from portal.node.common.reference import SCHEME


class GrantMounts(Protocol):
    """Storage.granted."""

    def __call__(
        self, person: Person, mounts: Sequence[Mount], image: str = "", /
    ) -> tuple[Mount, ...]:
        """The mounts as permitted."""
        ...


class Storage:
    """A user's home directory and storage folders, accessed as that user."""

    def __init__(
        self,
        files: UserFiles,
        own_images: OwnImageRules,
        record: Callable[[str, str, str], None],
        shared: Callable[[Person], list[SharedFolder]],
        permitted: Callable[[Person, Collection[tuple[str, str]]], list[SharedFolder]],
        storage: str,
        refused_files: Callable[[Person], Sequence[RefusedFile]],
    ) -> None:
        self._files = files
        self._own_images = own_images
        self._record = record
        self._shared = shared
        self._permitted = permitted
        self._storage = storage
        self._refused_files = refused_files

    def images(self, person: Person) -> list[ImageFile]:
        """The newest image files that the user may launch; raises Unavailable.

        [] where the site permits none.
        """
        if self._own_images.own == "off":
            return []
        images = proposable(self._files.image_files(person.name, self._own_images.folders))
        refused = {file.path for file in self._refused_files(person)}
        return [file for file in images if file.path not in refused]

    def list(self, person: Person) -> list[Folder]:
        """All folders that can be mounted: the home directory, the user's own, then shared ones.

        Raises Unavailable.
        """
        others = [self._folder(shared) for shared in self._shared(person)]
        return self._files.folders(person.name) + others

    def _folder(self, shared: SharedFolder) -> Folder:
        return Folder(
            shared.name,
            path_of_shared(shared.owner, shared.folder, self._storage),
            problem=name_problem(shared.folder),
            owner=shared.owner,
            read_only=shared.access == READ,
        )

    def granted(
        self, person: Person, mounts: Sequence[Mount], image: str = ""
    ) -> tuple[Mount, ...]:
        """The mounts as permitted: read-only where the folder is shared read-only.

        `image`: the user's own image, whose file must exist. Raises Unavailable, and InvalidRequest
        with the same text for folders that do not exist and for those that are not shared with the
        user. Sends no command if there is nothing to check.
        """
        own_folders = [mount.folder for mount in mounts if mount.folder != HOME and not mount.owner]
        file = "" if image.startswith(SCHEME) else image
        checked = own_folders or file
        missing = self._files.missing(person.name, own_folders, file) if checked else set()
        others = [(mount.owner, mount.name) for mount in mounts if mount.owner]
        permitted = self._permitted(person, others) if others else []
        shared_folders = {folder.name: folder for folder in permitted}
        problems = [
            FieldError(f"mounts.{index}", _missing(mount))
            for index, mount in enumerate(mounts)
            if mount.folder in missing or (mount.owner and mount.folder not in shared_folders)
        ]
        if file in missing:
            problems.append(FieldError(IMAGE, f"there is no file {file} that you may read"))
        if problems:
            raise InvalidRequest(problems)
        return tuple(
            mount.model_copy(update={"read_only": True})
            if mount.owner and shared_folders[mount.folder].access == READ
            else mount
            for mount in mounts
        )

    def make(self, person: Person, name: str) -> Folder:
        """Create a storage folder; raises InvalidRequest for the field "folder", Conflict
        if none of the storage can be used, or Unavailable.
        """
        if problem := name_problem(name):
            raise InvalidRequest([FieldError("folder", problem)])
        folder = self._files.make_folder(person.name, name)
        self._record(person.name, "folder.make", name)
        return folder


def _missing(mount: Mount) -> str:
    if mount.owner:
        return f"no folder {mount.folder} is shared with you"
    return f"you have no folder named {mount.folder}"

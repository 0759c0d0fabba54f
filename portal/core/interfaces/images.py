"""Interfaces to Apptainer, to base systems and to the site's folder of images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from portal.core.images.inventory import Contents, Inventory, Package
from portal.core.images.names import ImageName
from portal.core.images.needs import Machine
from portal.core.images.recipe import Sources
from portal.core.images.use import Removal, StoredImage

Note = Callable[[str], None]
"""Shows a line of progress."""


class Containers(Protocol):
    """Apptainer. Every method raises ImageError with Apptainer's last messages when it fails."""

    def version(self) -> str:
        """Apptainer's version."""
        ...

    def unpack(
        self, source: str, target: Path, fakeroot: bool, arguments: Mapping[str, str], place: Path
    ) -> None:
        """Build a folder from a definition or an address; `place`: base of its relative paths."""
        ...

    def pack(self, root: Path, file: Path, fakeroot: bool, compression: str) -> None:
        """Build an image's file from such a folder, in the same directory."""
        ...

    def labels(self, file: Path) -> dict[str, str]:
        """The labels of an image."""
        ...

    def test(self, file: Path, home: Path, binds: Sequence[str]) -> int:
        """Run /test.sh contained like a session; returns its exit status."""
        ...


class Roots(Protocol):
    """An image's file system while it is a folder. Every method raises ImageError."""

    def has_base(self, suite: str) -> bool:
        """Whether the base system of a Debian release is cached."""
        ...

    def make_base(self, suite: str, root: Path) -> None:
        """Create a minimal Debian system."""
        ...

    def lend(self, root: Path, suite: str) -> None:
        """Add this machine's mirrors, proxies and certificates, for the build only."""
        ...

    def take_back(self, root: Path) -> None:
        """Remove them, and caches and logs of the build."""
        ...

    def inspect(self, root: Path) -> tuple[str, list[Package]]:
        """The distribution's name, and all packages."""
        ...

    def describe(self, root: Path, contents: Contents, definition: str) -> None:
        """Write labels, definition and inventory."""
        ...


class Workspaces(Protocol):
    """Folders for builds."""

    def __call__(self) -> AbstractContextManager[Path]:
        """Create a folder that is deleted at the end; also deletes leftovers of crashed builds."""
        ...


class Recipes(Protocol):
    """Recipes on this machine."""

    def folder(self, name: ImageName) -> Path | None:
        """The recipe's folder; None if there is none."""
        ...

    def read(self, folder: Path) -> Sources:
        """A recipe; raises ImageError."""
        ...


class ImageStore(Protocol):
    """The site's folder of images. Every method raises ImageError."""

    def lock(self, name: ImageName) -> AbstractContextManager[None]:
        """Only one process builds or deletes an image."""
        ...

    def all(self) -> list[StoredImage]:
        """All images, by name."""
        ...

    def get(self, name: ImageName) -> StoredImage:
        """One image."""
        ...

    def file(self, name: ImageName) -> Path:
        """The current file of an image."""
        ...

    def install(
        self, name: ImageName, file: Path, contents: Contents, apptainer: str, now: datetime
    ) -> Inventory:
        """Make a file the current one, in one step; jobs keep the one that they have."""
        ...

    def describe(self, name: ImageName, text: str) -> None:
        """Replace image.toml."""
        ...

    def retire(self, name: ImageName, when: datetime | None) -> None:
        """Set or remove the mark that hides an image from launches."""
        ...

    def remove(self, removal: Removal) -> None:
        """Delete these files, or the whole image."""
        ...


class MachineCheck(Protocol):
    """Checks whether this machine can build images."""

    def __call__(self) -> Machine:
        """Determine programs and permissions."""
        ...

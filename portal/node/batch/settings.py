"""The site's settings for the commands, which the portal writes (`slipway render batch`)."""

from __future__ import annotations

import json
import os

from portal.node.batch.image.site import SiteFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "/etc/slipway/batch.json"


class SettingsError(Exception):
    """The settings cannot be read; the text is for the person who submits."""


class Image:
    """One of the site's images."""

    __slots__ = ("default", "environment", "files", "hidden_from", "path", "version", "visible_to")

    def __init__(self, data: Mapping[str, object]) -> None:
        self.environment = str(data["environment"])
        self.version = str(data["version"])
        self.path = str(data["path"])
        self.default = data.get("default") is True
        self.visible_to = _names(data.get("visible_to"))
        """Users who see it; None: all but `hidden_from`."""
        self.hidden_from = _names(data.get("hidden_from")) or frozenset()
        self.files = [(str(path), str(id)) for path, id in data.get("files", [])]  # type: ignore[attr-defined]
        """(path, id in the SIF header) of its files, also of replaced ones."""

    @property
    def name(self) -> str:
        """Environment and version, as in --image."""
        return f"{self.environment}/{self.version}"

    def permits(self, user: str) -> bool:
        """Whether a user may see it."""
        if self.visible_to is not None:
            return user in self.visible_to
        return user not in self.hidden_from


class Settings:
    """Limits of users' requests, and paths on the nodes."""

    __slots__ = (
        "apptainer",
        "binds",
        "command",
        "gpu_kinds",
        "image_cache_mb",
        "images",
        "insecure",
        "left_out",
        "max_image_mb",
        "max_shared_memory_mb",
        "own_images",
        "registries",
        "retired",
        "storage",
        "toolkit",
    )

    def __init__(self, data: Mapping[str, object]) -> None:
        images = data["images"]
        kinds = data.get("gpu_kinds", [])
        binds = data.get("binds", [])
        sources = data.get("own_images", [])
        registries, insecure = data.get("registries", []), data.get("insecure", [])
        retired, left_out = data.get("retired", []), data.get("left_out", [])
        lists = (images, kinds, binds, sources, registries, insecure, retired, left_out)
        if not all(isinstance(value, list) for value in lists):
            raise ValueError("a list is expected")
        self.images = [Image(item) for item in images]  # type: ignore[attr-defined]
        self.retired = [Image(item) for item in retired]  # type: ignore[attr-defined]
        """Images that can no longer be requested, for `refused_files`."""
        self.left_out = [Image(item) for item in left_out]  # type: ignore[attr-defined]
        """Images whose descriptions are invalid at present."""
        self.gpu_kinds = kinds
        self.binds = [str(path) for path in binds]  # type: ignore[attr-defined]
        self.own_images = frozenset(map(str, sources))  # type: ignore[call-overload]
        """Permitted sources of users' own images: "file", "docker"."""
        self.registries = list(map(str, registries))  # type: ignore[call-overload]
        """Hosts from which images may be pulled; "*": every one."""
        self.insecure = list(map(str, insecure))  # type: ignore[call-overload]
        self.max_image_mb = _size(data.get("max_image_mb"), 20 << 10)
        self.image_cache_mb = _size(data.get("image_cache_mb"), 40 << 10)
        self.storage = str(data["storage"])
        self.toolkit = str(data["toolkit"])
        self.command = str(data["command"])
        """This program's path on the nodes."""
        self.apptainer = str(data.get("apptainer", "apptainer"))
        most = data.get("max_shared_memory_mb")
        self.max_shared_memory_mb = most if isinstance(most, int) else None

    def refused_files(self, user: str, *, retired: bool = True) -> list[SiteFile]:
        """Return the files of images hidden from a user and, with `retired`, of retired images.

        A file that also belongs to an image which this user may start is not refused.
        """
        current = (*self.images, *self.left_out)
        permitted = {id for image in current if image.permits(user) for _, id in image.files}
        refused = []
        for image in (*current, *self.retired):
            if not image.permits(user):
                reason = "it is not offered to you"
            elif retired and image in self.retired:
                reason = f"{image.environment} {image.version} was retired by an administrator"
            else:
                continue
            refused += [
                SiteFile(path, id, reason)
                for path, id in image.files
                if not id or id not in permitted
            ]
        return refused


def _size(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _names(value: object) -> frozenset[str] | None:
    return frozenset(map(str, value)) if isinstance(value, list) else None


def load(file: str = "") -> Settings:
    """Read the settings; raises SettingsError."""
    file = file or os.environ.get("SLIPWAY_BATCH_SETTINGS", FILE)
    try:
        with open(file, encoding="utf-8") as stream:
            return Settings(json.load(stream))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"Slipway's settings ({file}) cannot be read: {error!r}. Tell the administrators."
        ) from None

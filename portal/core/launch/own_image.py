"""A person's own image in a launch: a SIF file of theirs, or one that a registry has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import WithJsonSchema

from portal.core.launch.mounts import storage_of
from portal.core.validation import checked
from portal.errors import FieldError
from portal.node.common.folder_name import name_problem
from portal.node.common.reference import MAX_LENGTH, SCHEME, host_problem, parse

IMAGE = "image"
OWN = "own"
"""The environment of sessions that run an image of their owner's; no site's image is named so."""
PLACE = "@image"
"""What stands for the image in the batch script, since only the job knows its path."""
SUFFIX = ".sif"
# Part of a batch script; "#", "$", quotes and blanks would be more than text there.
_PATH = re.compile(r"[A-Za-z0-9._/@%+=:,-]+")
Own = Literal["off", "files", "registries"]
MOST_FILES = 30
"""Files that a form proposes, of each kind of place."""


@dataclass(frozen=True)
class ImageFile:
    """A file that its owner may launch; `size` in bytes."""

    name: str
    """As launches name it: FOLDER/NAME.sif, or its path in a folder of the site's."""
    path: str
    """Its absolute path on the cluster, as batch jobs name it."""
    size: int


@dataclass(frozen=True)
class OwnImageRules:
    """What the site permits; sizes in MiB."""

    own: Own = "off"
    folders: tuple[str, ...] = ()
    """Folders of the site's with images, besides the users' storage folders."""
    registries: tuple[str, ...] = ()
    """Hosts with their ports; "*" for every one."""
    insecure: tuple[str, ...] = ()
    """Those of them that have no TLS."""
    max_mb: int = 20 * 1024
    cache_mb: int = 40 * 1024
    """For all pulled images of one user."""
    start_seconds: int = 120
    """How long an image's own start-up may take."""
    command: str = "/usr/local/bin/slipway"
    """The command on compute nodes."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Where images may come from, as `slipway sbatch` names it."""
        return {"off": (), "files": ("file",), "registries": ("file", "docker")}[self.own]


NO_OWN_IMAGES = OwnImageRules()


def _written(text: str) -> str:
    """The text, if it can name an image; raises ValueError."""
    if "://" in text:
        return str(parse(text))
    if len(text) > MAX_LENGTH:
        raise ValueError(f"use up to {MAX_LENGTH} characters")
    if text and not _PATH.fullmatch(text):
        raise ValueError("in the file's path use letters, digits and . _ / @ % + = : , - only")
    if not text.endswith(SUFFIX):
        raise ValueError(
            f"name a file that ends in {SUFFIX}, as FOLDER/NAME{SUFFIX}, or {SCHEME}HOST/NAME:TAG"
        )
    parts = text.removeprefix("/").split("/")
    if not all(parts) or not {".", ".."}.isdisjoint(parts):
        raise ValueError("write the path without //, . and ..")
    if text.startswith("-") or (
        not text.startswith("/") and (len(parts) < 2 or name_problem(parts[0]))
    ):
        raise ValueError(f"name one of your storage folders first: FOLDER/NAME{SUFFIX}")
    return text


OwnImage = Annotated[
    str,
    checked(_written),
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": MAX_LENGTH,
            "description": "an own image: FOLDER/NAME.sif in a storage folder, or "
            "docker://HOST/NAME:TAG, where the site permits it",
        }
    ),
]


def proposable(files: Iterable[ImageFile]) -> list[ImageFile]:
    """Those files whose names a launch accepts."""
    return [file for file in files if _acceptable(file.name)]


def _acceptable(name: str) -> bool:
    try:
        return _written(name) == name
    except ValueError:
        return False


def image_problems(image: str, rules: OwnImageRules) -> list[FieldError]:
    """Why the site does not permit an image, in words that say what it permits."""
    text = _problem(image, rules)
    return [FieldError(IMAGE, text)] if text else []


def _problem(image: str, rules: OwnImageRules) -> str:
    if rules.own == "off":
        return "this site does not permit own images; choose an environment"
    if image.startswith(SCHEME):
        if rules.own != "registries":
            return f"this site permits own images as files only: FOLDER/NAME{SUFFIX}"
        return host_problem(parse(image).host, list(rules.registries))
    if image.startswith("/") and _site_folder(image, rules.folders) is None:
        permitted = f", or in {' or '.join(rules.folders)}" if rules.folders else ""
        return f"choose a file in one of your storage folders{permitted}"
    return ""


def _site_folder(image: str, folders: Iterable[str]) -> str | None:
    return next((f for f in folders if image.startswith(f.rstrip("/") + "/")), None)


def image_title(image: str) -> str:
    """A short name for lists: the file's, or that in the registry with its tag."""
    name = image.rpartition("/")[2]
    return re.sub(r"@sha256:([0-9a-f]{12})[0-9a-f]*$", r"@\1", name)


@dataclass(frozen=True)
class ImageJob:
    """What the job needs to know to find the image; sizes in MiB."""

    command: str
    folder: str
    """The folder that the file is in, absolute or relative to the home; "" for a reference."""
    file: str
    """Its path in that folder."""
    reference: str
    insecure: str
    """The registry's host if it has no TLS."""
    max_mb: int
    cache_mb: int
    start_seconds: int


def image_job(owner: str, image: str, rules: OwnImageRules, storage: str) -> ImageJob:
    """What a session's job needs; `storage`: the site's setting."""
    folder, file, reference, insecure = "", "", "", ""
    if image.startswith(SCHEME):
        reference, host = image, parse(image).host
        insecure = host if host in rules.insecure else ""
    elif image.startswith("/"):
        # Of a folder that is no longer permitted: its own, so that the job says what is wrong.
        folder = (_site_folder(image, rules.folders) or image.rpartition("/")[0]).rstrip("/")
        file = image.removeprefix(folder + "/")
    else:
        name, _, file = image.partition("/")
        folder = f"{storage_of(owner, storage).rstrip('/')}/{name}"
    return ImageJob(
        command=rules.command,
        folder=folder,
        file=file,
        reference=reference,
        insecure=insecure,
        max_mb=rules.max_mb,
        cache_mb=rules.cache_mb,
        start_seconds=rules.start_seconds,
    )

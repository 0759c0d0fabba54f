"""A user's own image in a launch: a SIF file of theirs, or an image in a registry."""

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
"""The environment of sessions that run their owner's image; reserved, site images cannot use it."""
PLACEHOLDER = "@image"
"""Stands for the image in the batch script, since only the job knows its path."""
SUFFIX = ".sif"
# Part of a batch script, in which "#", "$", quotes and blanks have a meaning.
_PATH = re.compile(r"[A-Za-z0-9._/@%+=:,-]+")
Own = Literal["off", "files", "registries"]
MOST_FILES = 30
"""Files that a form proposes from each kind of folder."""


@dataclass(frozen=True)
class ImageFile:
    """A file that its owner may launch; `size` in bytes."""

    name: str
    """Its name in launches: FOLDER/NAME.sif, or its path in one of the site's folders."""
    path: str
    """Its absolute path on the cluster, used by batch jobs."""
    size: int


@dataclass(frozen=True)
class OwnImageRules:
    """The site's rules for own images; sizes in MiB."""

    own: Own = "off"
    folders: tuple[str, ...] = ()
    """The site's folders with images, besides the users' storage folders."""
    registries: tuple[str, ...] = ()
    """Hosts with their ports; "*" permits all."""
    insecure: tuple[str, ...] = ()
    """Those of them that have no TLS."""
    max_mb: int = 20 * 1024
    cache_mb: int = 40 * 1024
    """For all pulled images of one user."""
    start_seconds: int = 120
    """Time limit for an image's start-up script."""
    command: str = "/usr/local/bin/slipway"
    """The command on compute nodes."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Permitted kinds of sources, as `slipway sbatch` names them."""
        return {"off": (), "files": ("file",), "registries": ("file", "docker")}[self.own]


NO_OWN_IMAGES = OwnImageRules()


def _image_name(text: str) -> str:
    """Return the text if it can name an image; raises ValueError."""
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
    checked(_image_name),
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
    """The files whose names a launch accepts."""
    return [file for file in files if _acceptable(file.name)]


def _acceptable(name: str) -> bool:
    try:
        return _image_name(name) == name
    except ValueError:
        return False


def image_problems(image: str, rules: OwnImageRules) -> list[FieldError]:
    """Why the site does not permit an image; the message says which images it permits."""
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
    """A short name for lists: the file's name, or the repository's with its tag."""
    name = image.rpartition("/")[2]
    return re.sub(r"@sha256:([0-9a-f]{12})[0-9a-f]*$", r"@\1", name)


@dataclass(frozen=True)
class ImageJob:
    """The parameters by which a job locates its image; sizes in MiB."""

    command: str
    folder: str
    """The file's folder, absolute or relative to the home; "" for a reference."""
    file: str
    """Its path in that folder."""
    reference: str
    insecure: str
    """The registry's host if it has no TLS."""
    max_mb: int
    cache_mb: int
    start_seconds: int


def image_job(owner: str, image: str, rules: OwnImageRules, storage: str) -> ImageJob:
    """Build the image parameters of a session's job; `storage`: the site's setting."""
    folder, file, reference, insecure = "", "", "", ""
    if image.startswith(SCHEME):
        reference, host = image, parse(image).host
        insecure = host if host in rules.insecure else ""
    elif image.startswith("/"):
        # Use the file's folder even if it is no longer permitted: the job then reports the error.
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

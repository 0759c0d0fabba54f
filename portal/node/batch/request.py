"""The request of Slipway's options: the image, folders, shared memory, a share of a GPU."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import stat

from portal.node.batch.image import ImageError, site
from portal.node.batch.options import OptionError
from portal.node.common import reference
from portal.node.common.folder_name import PATTERN, name_problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, BinaryIO

    from portal.node.batch.settings import Image, Settings

VERSION = 1
MAX_ENV_FILE = 95 << 10
"""Bytes; one variable of a process can have 128 KiB, and this one is encoded."""
MAX_SHM = 1 << 30
"""MiB; more than any node has."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHARED = re.compile(rf"([A-Za-z0-9_][A-Za-z0-9._@-]{{0,63}})/{PATTERN}")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}


class Request:
    """A checked request; it travels to the nodes as text."""

    __slots__ = (
        "apptainer",
        "binds",
        "cache_mb",
        "command",
        "image",
        "insecure",
        "max_mb",
        "name",
        "own",
        "shm_mb",
        "toolkit",
    )

    def __init__(self) -> None:
        self.image = ""
        """A path, or an address such as docker://…"""
        self.name = ""
        """The image as the person named it."""
        self.binds: list[list[str]] = []
        """Folders: the path, which is the same in the container, "rw" or "ro", and its owner if
        that is another user, who shares it."""
        self.own = False
        """Whether it is the person's own image, which the job checks or pulls first."""
        self.max_mb = 0
        """MiB that an own image may have, and for all that are pulled."""
        self.cache_mb = 0
        self.insecure = False
        """Whether its registry has no TLS."""
        self.shm_mb = 0
        self.toolkit = ""
        self.command = ""
        self.apptainer = ""

    def text(self) -> str:
        """One line of ASCII that `parse` reads."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps({"version": VERSION, **data}, ensure_ascii=True)


def parse(text: str) -> Request:
    """Parse `Request.text`; raises ValueError."""
    data = json.loads(text)
    if not isinstance(data, dict) or data.pop("version", None) != VERSION:
        raise ValueError("the job was submitted by another version of Slipway")
    request = Request()
    for name, value in data.items():
        if name not in Request.__slots__ or type(value) is not type(getattr(request, name)):
            raise ValueError(f"unexpected {name}")
        setattr(request, name, value)
    return request


def last_values(options: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the last value of each option, as with Slurm's."""
    return dict(options)


def build(
    options: list[tuple[str, str]], settings: Settings, user: str, home: str
) -> tuple[Request, tuple[str, str]]:
    """The request, and the values of --gres for a share of a GPU; raises OptionError."""
    values = last_values(options)
    request = Request()
    request.name = values["image"]
    request.image = find_image(values["image"], settings, user)
    request.own = is_own(values["image"])
    request.max_mb, request.cache_mb = settings.max_image_mb, settings.image_cache_mb
    if request.image.startswith(reference.SCHEME):
        request.insecure = reference.parse(request.image).host in settings.insecure
    request.toolkit, request.command = settings.toolkit, settings.command
    request.apptainer = settings.apptainer
    request.binds = [[path, "rw"] for path in settings.binds]
    for option, value in options:
        if option == "mount":
            request.binds.append(read_mount(value, settings.storage, user, home))
    if "shm" in values:
        request.shm_mb = read_shm(values["shm"], settings)
    return request, read_fgpu(values, settings)


def is_own(value: str) -> bool:
    """Whether a value names a person's own image, by address or file."""
    return "://" in value or value.startswith(("/", "./", "../", "~")) or value.endswith(".sif")


def find_image(value: str, settings: Settings, user: str) -> str:
    """The path or address of an image; raises OptionError."""
    if not value:
        raise OptionError("--image: it needs a value")
    if is_own(value):
        return _address(value, settings) if "://" in value else _file(value, settings, user)
    visible = [image for image in settings.images if image.permits(user)]
    environment, _, version = value.partition("/")
    matches = [image for image in visible if image.environment == environment]
    if not matches:
        raise OptionError(
            f"--image: there is no image {value!r}; choose one of: {_listed(_names(visible))}"
        )
    if not version:
        # The portal lists the newest version first.
        return next((image for image in matches if image.default), matches[0]).path
    for image in matches:
        if image.version == version:
            return image.path
    raise OptionError(
        f"--image: {environment} has no version {version!r}; choose one of: "
        f"{_listed(image.name for image in matches)}"
    )


def _names(images: Iterable[Image]) -> list[str]:
    return [image.name for image in images]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none (no image is offered to you)"


def _address(value: str, settings: Settings) -> str:
    scheme = value.partition(":")[0]
    if scheme not in settings.own_images:
        raise OptionError(f"--image: images from {scheme}:// are not permitted here")
    try:
        parsed = reference.parse(value)
    except ValueError as error:
        raise OptionError(f"--image: {error}") from None
    if problem := reference.host_problem(parsed.host, settings.registries):
        raise OptionError(f"--image: {problem}")
    return str(parsed)


def _file(value: str, settings: Settings, user: str) -> str:
    if "file" not in settings.own_images:
        raise OptionError("--image: your own image files are not permitted here")
    path = os.path.abspath(os.path.expanduser(value))
    if any(ord(letter) < 32 for letter in path):
        raise OptionError("--image: the file's name has control characters")
    try:
        with open_regular("--image", path) as stream:
            # A SIF's header: "#!/usr/bin/env run-singularity" in 32 bytes, then its magic.
            if stream.read(64)[32:41] != b"SIF_MAGIC":
                raise OptionError(f"--image: {path} is not an Apptainer image (SIF)")
            site.check(stream.fileno(), path, settings.refused_files(user))
    except OSError as error:
        raise OptionError(f"--image: {path}: {error.strerror}") from None
    except ImageError as error:
        raise OptionError(f"--image: {error}") from None
    return path


@contextlib.contextmanager
def open_regular(option: str, path: str) -> Iterator[BinaryIO]:
    """A regular file, opened without waiting; raises OSError, OptionError."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OptionError(f"{option}: {path} is not a file")
        yield stream


def read_mount(value: str, storage: str, user: str, home: str) -> list[str]:
    """A folder, by its name in the storage or its path, as in Request.binds; raises OptionError."""
    base = os.path.join(home, storage.replace("{user}", user))
    folder, colon, mode = value.rpartition(":")
    # A storage folder's name may end with “:ro”, or begin with “~”.
    if not colon or mode not in ("ro", "rw") or _is_storage_folder(base, value):
        folder, mode = value, "rw"
    shared = _SHARED.fullmatch(folder)
    if _is_storage_folder(base, folder):
        path = os.path.join(base, folder)
    elif shared:
        path = _shared_folder(folder, shared[1], storage)
        mode = mode if os.access(path, os.W_OK) else "ro"
    elif folder.startswith(("/", "~")):
        path = os.path.expanduser(folder)
    elif folder == "home":
        path = home
    elif not name_problem(folder):
        path = os.path.join(base, folder)
    else:
        raise OptionError(f"--mount: {folder!r} is neither a storage folder's name nor a path")
    if any(ord(letter) < 32 for letter in path):
        raise OptionError("--mount: the path has control characters")
    if not os.path.isdir(path):
        raise OptionError(f"--mount: there is no folder {path}")
    return [os.path.normpath(path), mode, *([shared[1]] if shared else [])]


def _is_storage_folder(base: str, name: str) -> bool:
    return not name_problem(name) and os.path.isdir(os.path.join(base, name))


def _shared_folder(folder: str, owner: str, storage: str) -> str:
    """The path of another user's storage folder; an unknown user has none, too."""
    name = folder.partition("/")[2]
    base = storage.replace("{user}", owner)
    if not base.startswith("/"):
        base = os.path.join(os.path.expanduser(f"~{owner}"), base)
    path = os.path.join(base, name)
    if not identity(path, owner) or not os.access(path, os.R_OK | os.X_OK):
        raise OptionError(f"--mount: no folder {folder} is shared with you")
    return path


def identity(path: str, owner: str) -> str:
    """Return the device and inode of a folder of this owner; "" for anything else."""
    try:
        status = os.lstat(path)
        is_theirs = stat.S_ISDIR(status.st_mode) and status.st_uid == pwd.getpwnam(owner).pw_uid
    except (OSError, KeyError):
        return ""
    return f"{status.st_dev}:{status.st_ino}" if is_theirs else ""


def read_shm(value: str, settings: Settings) -> int:
    """MiB of shared memory; raises OptionError."""
    size = _SIZE.fullmatch(value.strip())
    if size is None:
        raise OptionError(f"--shm: {value!r} is not a size; write it as 512m or 2g")
    size_mb = float(size[1]) * _UNITS[(size[2] or "g").lower()]
    if size_mb < 1:
        raise OptionError(f"--shm: {value!r} is less than 1m")
    if size_mb > MAX_SHM:
        raise OptionError(f"--shm: {value!r} is more than any node has")
    most = settings.max_shared_memory_mb
    if most is not None and size_mb > most:
        raise OptionError(f"--shm: at most {most}m are permitted here")
    return int(size_mb)


def read_fgpu(values: Mapping[str, str], settings: Settings) -> tuple[str, str]:
    """The values of --gres for --fgpu and --gpu-kind, "" without: the job's and its steps'.

    Where there is one kind, the job names none, and steps inherit its share. Raises OptionError.
    """
    if "fgpu" not in values:
        if "gpu-kind" in values:
            raise OptionError("--gpu-kind: it needs --fgpu")
        return "", ""
    from portal.node.common.fgpu import kind_from_json  # noqa: PLC0415 - few jobs need it

    kinds = [kind_from_json(data) for data in _kinds(settings)]
    if not kinds:
        raise OptionError("--fgpu: there are no GPUs here")
    kind_name = values.get("gpu-kind")
    names = [kind.name for kind in kinds]
    if kind_name is not None and kind_name not in names:
        raise OptionError(
            f"--gpu-kind: there is no {kind_name!r}; choose one of: {', '.join(names)}"
        )
    kind = kinds[0] if kind_name is None else kinds[names.index(kind_name)]
    try:
        amount = float(values["fgpu"])
    except ValueError:
        amount = -1.0
    if not 0 < amount < 1e6:
        raise OptionError(f"--fgpu: {values['fgpu']!r} is not a number above 0")
    gpus = max(1, -(-int(amount * 1000) // max(1, int(kind.whole_gpu * 1000))))
    granted = kind.grant(amount, gpus)
    if granted is None:
        raise OptionError(f"--fgpu: {values['fgpu']} is more than one job can have here")
    of_job = granted.step_gres if len(kinds) == 1 else granted.gres
    return of_job, granted.step_gres


def _kinds(settings: Settings) -> list[Mapping[str, Any]]:
    kinds = settings.gpu_kinds
    return list(kinds) if isinstance(kinds, list) else []


def read_env_files(options: list[tuple[str, str]]) -> dict[str, str]:
    """The variables in all files of --env-file: lines NAME=value; raises OptionError."""
    variables: dict[str, str] = {}
    for option, path in options:
        if option == "env-file":
            variables.update(_env_file(path))
            # Each of them becomes longer in JSON, and then by a third.
            if sum(len(json.dumps(item)) + 2 for item in variables.items()) > MAX_ENV_FILE:
                raise OptionError(
                    f"--env-file: {path}: more than {MAX_ENV_FILE >> 10} KiB of variables in all"
                )
    return variables


def _env_file(path: str) -> dict[str, str]:
    try:
        with open_regular("--env-file", path) as stream:
            text = stream.read(MAX_ENV_FILE + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise OptionError(f"--env-file: {path}: {reason}") from None
    if len(text) > MAX_ENV_FILE:
        raise OptionError(f"--env-file: {path} has more than {MAX_ENV_FILE >> 10} KiB")
    variables = {}
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not _NAME.fullmatch(name) or "\0" in value:
            raise OptionError(f"--env-file: {path}, line {number}: write NAME=value")
        variables[name] = value
    return variables

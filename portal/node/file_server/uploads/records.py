"""Records of uploads: small JSON files, which outlive the server."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from dataclasses import asdict, dataclass, fields

from portal.node.file_server.errors import Refused
from portal.node.file_server.location import PART_PREFIX
from portal.node.file_server.state import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REFUSE, REPLACE, RENAME = "refuse", "replace", "rename"
CONFLICTS = (REFUSE, REPLACE, RENAME)
"""Values of on_conflict."""
PARTIAL, FINAL = "partial", "final;"
"""Values of Upload-Concat; the URLs of the partial uploads follow the second."""
_ID = re.compile(r"[0-9a-f]{32}")
_MOST_BYTES = 512 * 1024
SMALL = 8 * 1024 * 1024
"""Bytes up to which a file is written without a record of it."""


@dataclass
class Record:
    """An upload; how much of it has arrived is the size of its part."""

    id: str
    path: str
    """Location of the target; of a partial upload, a location beside its part."""
    length: int | None
    """None until the client sends the length that it deferred."""
    created: float
    on_conflict: str = REFUSE
    modified: float | None = None
    """Time to set on the file, in seconds since the epoch."""
    sha256: str = ""
    """Hexadecimal; "" if the client sent none."""
    inode: int = 0
    """Inode of the part, to recognize it."""
    final: str = ""
    """Location of the final name, saved before the rename."""
    done: float = 0.0
    """Time of completion, in seconds since the epoch; 0 before."""

    resumable: bool = True
    """False for a file of a plain PUT: recorded only in case the process is killed."""
    folder: str = ""
    """The path of the private folder that has the part; "": it is in the target's folder."""
    kept: int = 0
    """Inode of the file that the part is being written into; 0 while no byte of it is changed."""
    metadata: str = ""
    """Upload-Metadata as the client sent it."""
    concat: str = ""
    """Upload-Concat as the client sent it."""

    @property
    def is_partial(self) -> bool:
        """Whether this is a part for a final upload, which gets no name of its own."""
        return self.concat == PARTIAL

    @property
    def is_final(self) -> bool:
        """Whether this joins partial uploads."""
        return self.concat.startswith(FINAL)

    @property
    def partial_ids(self) -> list[str]:
        """The ids of the partial uploads that this joins, in their order."""
        urls = self.concat[len(FINAL) :].split() if self.is_final else []
        return [url.rsplit("/", 1)[-1] for url in urls]

    @property
    def part(self) -> bytes:
        """Name of the incomplete file in the target's folder."""
        return PART_PREFIX + self.id.encode() + b".part"


def new_id() -> str:
    """Return a random id."""
    return secrets.token_hex(16)


def no_upload() -> Refused:
    """The refusal for an upload that does not exist."""
    return Refused(404, "no_upload", "There is no such upload; it may have expired.")


class Store:
    """The records, in the first of several folders that is writable."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = list(folders)

    def __iter__(self) -> Iterator[Record]:
        """Yield all records that can be read."""
        for folder in self._folders:
            names = []
            with contextlib.suppress(OSError):
                names = os.listdir(folder)
            for name in names:
                if _ID.fullmatch(name[:-5]) and name.endswith(".json"):
                    record = _read(os.path.join(folder, name))
                    if record is not None and record.id == name[:-5]:
                        yield record

    def get(self, id: str) -> Record:
        """Return the record of an upload; raises Refused (404)."""
        if _ID.fullmatch(id):
            for folder in self._folders:
                record = _read(os.path.join(folder, id + ".json"))
                if record is not None and record.id == id:
                    return record
        raise no_upload()

    def save(self, record: Record) -> str:
        """Write a record atomically, and durably; returns its folder.

        Raises OSError if no folder is writable.
        """
        problem: OSError | None = None
        for number, folder in enumerate(self._folders):
            try:
                _write(folder, record)
            except OSError as error:
                problem = error
                continue
            for other in self._folders[:number]:  # get() would return an older state
                _unlink(os.path.join(other, record.id + ".json"))
            return folder
        raise problem or FileNotFoundError(2, "no folder")

    def remove(self, id: str) -> None:
        """Delete the record of an upload."""
        for folder in self._folders:
            _unlink(os.path.join(folder, id + ".json"))


def _write(folder: str, record: Record) -> None:
    make_private(folder)
    path = os.path.join(folder, record.id + ".json")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path + ".new", flags, 0o600), "wb", 0) as file:
            file.write(json.dumps(asdict(record)).encode())
            os.fsync(file.fileno())
        os.rename(path + ".new", path)
        _sync(folder)
    except OSError:
        _unlink(path + ".new")
        raise


def _sync(folder: str) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _read(path: str) -> Record | None:
    """Read a record; None if it is missing, invalid or not the user's."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags), "rb", 0) as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            data = json.loads(file.read(_MOST_BYTES))
        # A record of an earlier version lacks the newer fields.
        known = {field.name for field in fields(Record)}
        record = Record(**{name: value for name, value in data.items() if name in known})
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return None
    return record if _is_valid(record) else None


def _is_valid(record: Record) -> bool:
    return (
        all(isinstance(value, str) for value in _texts(record))
        and isinstance(record.length, (int, type(None)))
        and all(isinstance(value, int) for value in (record.inode, record.kept))
        and all(isinstance(value, (int, float)) for value in (record.created, record.done))
        and isinstance(record.modified, (int, float, type(None)))
        and record.on_conflict in CONFLICTS
        and isinstance(record.resumable, bool)
    )


def _texts(record: Record) -> tuple[str, ...]:
    return (
        record.path,
        record.sha256,
        record.final,
        record.folder,
        record.metadata,
        record.concat,
    )


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)

"""Properties of files and folders: live ones, which the server knows, and dead ones of programs.

Dead properties are an extended attribute of the file, so they survive copies and moves, also those
that do not pass through this server. Where the file system has none, they are refused.
"""

from __future__ import annotations

import errno
import stat
from email.utils import formatdate
from xml.sax.saxutils import escape

from portal.node.file_server import at
from portal.node.file_server.dav import documents
from portal.node.file_server.dav.documents import DAV
from portal.node.file_server.entries import etag
from portal.node.file_server.errors import Refused
from portal.node.file_server.headers import content_type, parse_date, parse_time
from portal.node.file_server.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping
    from xml.etree.ElementTree import Element

    from portal.node.file_server.location import Location

PREFIX = "/data/dav/"
ATTRIBUTE = "user.dav.properties"
MOST_BYTES = 16 * 1024
"""Of all dead properties of a file; some file systems accept only 4 KB."""
_ABSENT = (errno.ENODATA, errno.EOPNOTSUPP)
_ROOT = "properties"

SECONDS = DAV + "lastmodified"
TIMES = (DAV + "getlastmodified", SECONDS, "{urn:schemas-microsoft-com:}Win32LastModifiedTime")
"""The time of modification. RFC 4918 (15.7) would rather protect it, but programs that copy files
set it, by different names: macOS and rclone (fastmail) the first, rclone (owncloud) the second,
Windows the third; without it their next synchronization copies everything again."""
PROTECTED = frozenset(
    DAV + name
    for name in (
        "creationdate getcontentlength getcontenttype getetag lockdiscovery resourcetype "
        "supportedlock"
    ).split()
)
ALL = tuple(
    DAV + name
    for name in (
        "resourcetype getcontentlength getcontenttype getetag getlastmodified supportedlock "
        "lockdiscovery"
    ).split()
)
"""The live ones that RFC 4918 defines; the others are shown only if they are asked for."""
OF_FILES = (DAV + "getcontentlength", DAV + "getcontenttype")
_SUPPORTED_LOCK = "".join(
    f"<D:lockentry><D:lockscope><D:{scope}/></D:lockscope>"
    "<D:locktype><D:write/></D:locktype></D:lockentry>"
    for scope in ("exclusive", "shared")
)


def href(location: Location, *, is_folder: bool) -> str:
    """The path of a URL; that of a folder ends with a slash."""
    return PREFIX + str(location) + ("/" if is_folder and location.root else "")


# Live properties


def live(
    name: str, location: Location, status: os.stat_result | None, locks: Iterable[Lock]
) -> str | None:
    """The value of a property as XML; None if it is not a live one, or not of this file.

    The parent of the storage areas has no status.
    """
    is_folder = status is None or stat.S_ISDIR(status.st_mode)
    if name == DAV + "resourcetype":
        return "<D:collection/>" if is_folder else ""
    if status is None or (is_folder and name in OF_FILES):
        return None
    if name in TIMES:
        text = str(int(status.st_mtime))
        return text if name == SECONDS else formatdate(status.st_mtime, usegmt=True)
    if name == DAV + "getcontentlength":
        return str(status.st_size)
    if name == DAV + "getcontenttype":
        return escape(content_type(location.name))
    if name == DAV + "getetag":
        return escape(etag(status))
    if name == DAV + "supportedlock":
        return _SUPPORTED_LOCK
    return "".join(map(active, locks)) if name == DAV + "lockdiscovery" else None


def active(lock: Lock) -> str:
    """The element “activelock”."""
    scope = "exclusive" if lock.is_exclusive else "shared"
    root = escape(PREFIX + str(lock.location))
    return (
        "<D:activelock><D:locktype><D:write/></D:locktype>"
        f"<D:lockscope><D:{scope}/></D:lockscope>"
        f"<D:depth>{'infinity' if lock.is_deep else 0}</D:depth>{lock.owner}"
        f"<D:timeout>Second-{lock.seconds}</D:timeout>"
        f"<D:locktoken><D:href>{lock.token}</D:href></D:locktoken>"
        f"<D:lockroot><D:href>{root}</D:href></D:lockroot></D:activelock>"
    )


def parse_modified(name: str, text: str) -> float | None:
    """The time that a program sets, in seconds since the epoch; None if it is not valid."""
    if name == SECONDS:
        try:
            return parse_time(text.strip(), name)
        except Refused:  # ownCloud accepts both
            pass
    return parse_date(text.strip())


# Dead properties


def read_dead(descriptor: int) -> dict[str, Element]:
    """The dead properties of an open file, by name; raises OSError."""
    try:
        return _parse(at.attribute(descriptor, ATTRIBUTE))
    except OSError as error:
        if error.errno not in _ABSENT:
            raise
        return {}


def _parse(document: bytes) -> dict[str, Element]:
    """Something else in the attribute, which another user could have written, counts as none."""
    try:
        return {each.tag: each for each in documents.parse(document, _ROOT)}
    except Refused:
        return {}


def write_dead(descriptor: int, properties: Mapping[str, Element]) -> None:
    """Replace the dead properties of an open file at once; raises OSError."""
    inner = "".join(map(documents.text_of, properties.values()))
    document = f"<{_ROOT}>{inner}</{_ROOT}>".encode()
    if not properties:
        at.remove_attribute(descriptor, ATTRIBUTE)
    elif len(document) > MOST_BYTES:
        raise OSError(errno.ENOSPC, "too many properties")
    else:
        at.set_attribute(descriptor, ATTRIBUTE, document)


def dead_at(folder: int, name: bytes) -> dict[str, str]:
    """The dead properties of a name in an open directory as XML; none if they are not readable."""
    try:
        document = at.attribute_of(folder, name, ATTRIBUTE)
    except OSError:
        return {}
    return {key: documents.text_of(each) for key, each in _parse(document).items()}

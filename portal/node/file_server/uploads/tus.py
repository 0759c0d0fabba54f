"""The protocol tus 1.0.0 at /data/uploads/."""

from __future__ import annotations

import base64
import contextlib
import re
import time
from email.utils import formatdate

from portal.node.file_server.errors import Refused
from portal.node.file_server.headers import parse_time
from portal.node.file_server.location import parse
from portal.node.file_server.uploads.records import CONFLICTS, REFUSE, SMALL, Record, new_id
from portal.node.file_server.uploads.uploads import Chunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.http import Request
    from portal.node.file_server.uploads.uploads import Uploads

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,termination,expiration,checksum"
DIGEST_BYTES = {"sha1": 20, "sha256": 32}
CONTENT_TYPE = "application/offset+octet-stream"
FINAL = "Upload-Final-Path"
"""Header with the location of the completed file."""
_NUMBER = re.compile(r"[0-9]{1,18}")


def answer(uploads: Uploads, request: Request, id: str) -> None:
    """Answer a request to /data/uploads/ or /data/uploads/<id>; raises Refused."""
    method = request.command
    request.always = {"Tus-Resumable": VERSION}
    if method == "POST":  # for clients behind proxies that accept few methods
        method = request.headers.get("X-HTTP-Method-Override", method)
    if method == "OPTIONS":
        request.reply(204, _abilities())
        return
    if request.headers.get("Tus-Resumable") != VERSION:
        detail = f"The header “Tus-Resumable: {VERSION}” is missing."
        raise Refused(412, "version", detail, "Tus-Resumable")
    call = {"HEAD": _head, "PATCH": _patch, "DELETE": _delete}.get(method)
    if not id and method == "POST":
        _create(uploads, request)
    elif id and call is not None:
        call(uploads, request, id)
    else:
        raise Refused(405, "method", "This address does not accept that kind of request.")


def _abilities() -> dict[str, str]:
    return {
        "Tus-Version": VERSION,
        "Tus-Extension": EXTENSIONS,
        "Tus-Checksum-Algorithm": ",".join(DIGEST_BYTES),
    }


def _create(uploads: Uploads, request: Request) -> None:
    record = _requested_upload(request)
    offset = 0
    if request.length or request.length is None:
        _check_type(request)
    # The client gets the upload's URL with the response, so it could not resume it before.
    if request.length == record.length <= SMALL:
        record = uploads.write_whole(record, _chunk(request, 0))
        offset = record.length
    else:
        uploads.create(record)
        if request.length != 0:
            offset = _first(uploads, request, record)
    headers = _headers(uploads, record, offset)
    request.reply(201, {**headers, "Location": f"/data/uploads/{record.id}"})


def _first(uploads: Uploads, request: Request, record: Record) -> int:
    """Write the data of a creation request; removes the upload if that fails."""
    try:
        record, offset = uploads.append(record.id, _chunk(request, 0), request.connection)
    except BaseException:
        uploads.remove(record.id, request.connection)
        raise
    return offset


def _head(uploads: Uploads, request: Request, id: str) -> None:
    record, offset = uploads.state(id, request.connection)
    headers = _headers(uploads, record, offset)
    request.reply(
        200, {**headers, "Upload-Length": str(record.length), "Cache-Control": "no-store"}
    )


def _patch(uploads: Uploads, request: Request, id: str) -> None:
    _check_type(request)
    offset = _count(request, "Upload-Offset")
    record, offset = uploads.append(id, _chunk(request, offset), request.connection)
    request.reply(204, _headers(uploads, record, offset))


def _delete(uploads: Uploads, request: Request, id: str) -> None:
    uploads.remove(id, request.connection)
    request.reply(204)


def _headers(uploads: Uploads, record: Record, offset: int) -> dict[str, str]:
    headers = {"Upload-Offset": str(offset)}
    if record.done:
        headers[FINAL] = record.final
    else:
        headers["Upload-Expires"] = formatdate(uploads.expires(), usegmt=True)
    return headers


# Reading requests


def _requested_upload(request: Request) -> Record:
    """Parse the headers of a new upload; raises Refused."""
    if "Upload-Defer-Length" in request.headers:
        raise Refused(422, "value", "The length must be known.", "Upload-Length")
    length = _count(request, "Upload-Length")
    metadata = _metadata(request.headers.get("Upload-Metadata", ""))
    path = metadata.get("path", "")
    if not path:
        raise Refused(422, "value", "The location of the file is missing.", "path")
    on_conflict = _conflict(metadata.get("on_conflict", REFUSE), "on_conflict")
    digest, modified = metadata.get("sha256", "").lower(), metadata.get("modified", "")
    if digest and not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise Refused(422, "value", "This is not a SHA-256 in hexadecimal digits.", "sha256")
    return Record(
        id=new_id(),
        path=str(parse(path)),
        length=length,
        created=time.time(),
        on_conflict=on_conflict,
        modified=parse_time(modified, "modified") if modified else None,
        sha256=digest,
    )


def _conflict(text: str, field: str) -> str:
    if text not in CONFLICTS:
        raise Refused(422, "value", "This must be refuse, replace or rename.", field)
    return text


def _metadata(text: str) -> dict[str, str]:
    """Parse Upload-Metadata: keys, and values in Base64; raises Refused."""
    metadata: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        key, _, value = pair.partition(" ")
        try:
            metadata[key] = base64.b64decode(value, validate=True).decode()
        except ValueError:
            detail = f"The value of “{key}” is not UTF-8 text in Base64."
            raise Refused(422, "value", detail, "Upload-Metadata") from None
    return metadata


def _count(request: Request, name: str) -> int:
    text = request.headers.get(name, "")
    if not _NUMBER.fullmatch(text):
        raise Refused(422, "value", "This header must be a number of bytes.", name)
    return int(text)


def _check_type(request: Request) -> None:
    if request.headers.get("Content-Type") != CONTENT_TYPE:
        raise Refused(415, "type", f"The type must be {CONTENT_TYPE}.", "Content-Type")


def _chunk(request: Request, offset: int) -> Chunk:
    """The body of a request with its checksum; raises Refused."""
    algorithm, _, coded = request.headers.get("Upload-Checksum", "").partition(" ")
    digest = b""
    if algorithm:
        with contextlib.suppress(ValueError):
            digest = base64.b64decode(coded, validate=True)
        if len(digest) != DIGEST_BYTES.get(algorithm):
            names = " or ".join(DIGEST_BYTES)
            detail = f"Write {names}, a space and the checksum in Base64."
            raise Refused(400, "checksum", detail, "Upload-Checksum")
    on_conflict = request.headers.get("Upload-On-Conflict", "")
    if on_conflict:
        _conflict(on_conflict, "Upload-On-Conflict")
    return Chunk(offset, request.body(), algorithm, digest, on_conflict)

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
from portal.node.file_server.uploads.records import (
    CONFLICTS,
    FINAL,
    PARTIAL,
    REFUSE,
    SMALL,
    Record,
    new_id,
)
from portal.node.file_server.uploads.stored import PARTIAL_PATH
from portal.node.file_server.uploads.uploads import Chunk, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from portal.node.file_server.http import Request
    from portal.node.file_server.uploads.uploads import Uploads

VERSION = "1.0.0"
EXTENSIONS = (
    "creation,creation-defer-length,creation-with-upload,termination,expiration,checksum,"
    "concatenation"
)
DIGEST_BYTES = {"sha1": 20, "sha256": 32}
CONTENT_TYPE = "application/offset+octet-stream"
FINAL_PATH = "Upload-Final-Path"
"""Header with the location of the completed file."""
LONGEST_METADATA = 32 * 1024
_NUMBER = re.compile(r"[0-9]{1,18}")
_KEY = re.compile(r"[!-+\--~]+")
_PRINTABLE = re.compile(r"[ -~]*")
_URL = re.compile(r"(?:(?:https?://[^/?#]+)?/data/uploads/)?[0-9a-f]{32}")


def answer(uploads: Uploads, request: Request, id: str) -> None:
    """Answer a request to /data/uploads/ or /data/uploads/<id>; raises Refused."""
    request.always = {"Tus-Resumable": VERSION, "Cache-Control": "no-store"}
    # For clients behind proxies that accept few methods.
    method = request.headers.get("X-HTTP-Method-Override", request.command)
    if method == "OPTIONS":
        request.reply(204, _abilities())
        return
    if request.headers.get("Tus-Resumable") != VERSION:
        request.always["Tus-Version"] = VERSION
        detail = f"Send the header “Tus-Resumable: {VERSION}”, the only version known here."
        raise Refused(412, "version", detail, "Tus-Resumable")
    calls = {"HEAD": _head, "PATCH": _patch, "DELETE": _delete} if id else {"POST": _create}
    if method not in calls:
        request.always["Allow"] = ", ".join([*calls, "OPTIONS"])
        raise Refused(405, "method", "This address does not accept that kind of request.")
    if request.read_only and method != "HEAD":
        raise Refused(403, "permission", "This token was created without “files:write”.")
    calls[method](uploads, request, id)


def _abilities() -> dict[str, str]:
    return {
        "Tus-Version": VERSION,
        "Tus-Extension": EXTENSIONS,
        "Tus-Checksum-Algorithm": ",".join(DIGEST_BYTES),
    }


def _create(uploads: Uploads, request: Request, _: str) -> None:
    record = _requested_upload(request)
    offset = 0
    if request.length != 0:
        _check_data(request, record)
    # The client gets the upload's URL with the response, so it could not resume it before.
    if record.is_final:
        record = uploads.join(record, request.connection, request.still_working)
        offset = record.length or 0
    elif _is_small_file(request, record):
        record = uploads.write_whole(record, _chunk(request, 0))
        offset = record.length or 0
    else:
        uploads.create(record)
        if request.length != 0:
            offset = _first(uploads, request, record)
    headers = _headers(uploads, State(record, offset))
    request.reply(201, {**headers, "Location": f"/data/uploads/{record.id}"})


def _is_small_file(request: Request, record: Record) -> bool:
    """Whether all of a small file comes with its creation."""
    length = record.length
    return length is not None and request.length == length <= SMALL and not record.is_partial


def _check_data(request: Request, record: Record) -> None:
    """Validate the headers of a creation with data; raises Refused."""
    if record.is_final:
        raise Refused(403, "final", "A final upload has no data of its own.", "Upload-Concat")
    _check_type(request)


def _first(uploads: Uploads, request: Request, record: Record) -> int:
    """Write the data of a creation request; removes the upload if that fails."""
    try:
        record, offset = uploads.append(record.id, _chunk(request, 0), request.connection)
    except BaseException:
        uploads.remove(record.id, request.connection)
        raise
    return offset


def _head(uploads: Uploads, request: Request, id: str) -> None:
    state = uploads.state(id, request.connection, request.still_working)
    headers = {**_headers(uploads, state), **_as_created(state.record)}
    if state.problem is not None:
        request.always.update(headers)
        raise state.problem
    request.reply(200, headers)


def _as_created(record: Record) -> dict[str, str]:
    """What the client sent when it created an upload."""
    headers = {"Upload-Metadata": record.metadata, "Upload-Concat": record.concat}
    if record.length is None:
        headers["Upload-Defer-Length"] = "1"
    else:
        headers["Upload-Length"] = str(record.length)
    return {name: value for name, value in headers.items() if value}


def _patch(uploads: Uploads, request: Request, id: str) -> None:
    _check_type(request)
    chunk = _chunk(request, _count(request, "Upload-Offset"))
    record, offset = uploads.append(id, chunk, request.connection, request.still_working)
    request.reply(204, _headers(uploads, State(record, offset)))


def _delete(uploads: Uploads, request: Request, id: str) -> None:
    uploads.remove(id, request.connection)
    request.reply(204)


def _headers(uploads: Uploads, state: State) -> dict[str, str]:
    record, headers = state.record, {}
    if state.offset is not None:
        headers["Upload-Offset"] = str(state.offset)
    if not record.done:
        headers["Upload-Expires"] = formatdate(uploads.expires(record), usegmt=True)
    elif record.final:
        headers[FINAL_PATH] = record.final
    return headers


# Reading requests


def _requested_upload(request: Request) -> Record:
    """Parse the headers of a new upload; raises Refused."""
    concat = _concat(request.headers.get("Upload-Concat", ""))
    length = _length(request, concat)
    text = request.headers.get("Upload-Metadata", "").strip()
    metadata = _metadata(text)
    if concat == PARTIAL:
        # All of its metadata is the client's, but for a path that says where to put the data.
        path, metadata = _text(metadata, "path") or PARTIAL_PATH, {}
    else:
        path = _text(metadata, "path")
    if not path:
        raise Refused(422, "value", "The location of the file is missing.", "path")
    digest, modified = _text(metadata, "sha256").lower(), _text(metadata, "modified")
    if digest and not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise Refused(422, "value", "This is not a SHA-256 in hexadecimal digits.", "sha256")
    return Record(
        id=new_id(),
        path=str(parse(path)),
        length=length,
        created=time.time(),
        on_conflict=_conflict(_text(metadata, "on_conflict") or REFUSE, "on_conflict"),
        modified=parse_time(modified, "modified") if modified else None,
        sha256=digest,
        metadata=text,
        concat=concat,
    )


def _concat(text: str) -> str:
    """Validate Upload-Concat; raises Refused."""
    text = text.strip()
    urls = text[len(FINAL) :].split() if text.startswith(FINAL) else []
    are_uploads = urls and all(map(_URL.fullmatch, urls)) and _PRINTABLE.fullmatch(text)
    if text in ("", PARTIAL) or are_uploads:
        return text
    detail = f"Write {PARTIAL}, or {FINAL} and the URLs of partial uploads, separated by spaces."
    raise Refused(400, "value", detail, "Upload-Concat")


def _length(request: Request, concat: str) -> int | None:
    """The length of a new upload; None if it is deferred, or a sum. Raises Refused."""
    lengths = [name for name in ("Upload-Length", "Upload-Defer-Length") if name in request.headers]
    if concat.startswith(FINAL):
        if lengths:
            detail = "The length of a final upload is the sum of the lengths of its parts."
            raise Refused(400, "value", detail, lengths[0])
        return None
    if "Upload-Defer-Length" not in lengths:
        return _count(request, "Upload-Length")
    if len(lengths) > 1 or request.headers["Upload-Defer-Length"].strip() != "1":
        detail = "Write 1 if the length is not known yet, instead of Upload-Length."
        raise Refused(400, "value", detail, "Upload-Defer-Length")
    return None


def _conflict(text: str, field: str) -> str:
    if text not in CONFLICTS:
        raise Refused(422, "value", "This must be refuse, replace or rename.", field)
    return text


def _metadata(text: str) -> dict[str, bytes]:
    """Parse Upload-Metadata: keys, and values in Base64, which may be empty; raises Refused."""
    if len(text) > LONGEST_METADATA:
        detail = f"This has more than {LONGEST_METADATA:,} bytes."
        raise Refused(400, "value", detail, "Upload-Metadata")
    metadata: dict[str, bytes] = {}
    for pair in text.split(",") if text else ():
        key, _, value = pair.strip(" ").partition(" ")
        if not _KEY.fullmatch(key):
            raise _bad_metadata(key, "is not a key: write visible ASCII characters")
        if key in metadata:
            raise _bad_metadata(key, "is there twice")
        try:
            metadata[key] = base64.b64decode(value, validate=True)
        except ValueError:
            raise _bad_metadata(key, "has a value that is not Base64") from None
    return metadata


def _bad_metadata(key: str, problem: str) -> Refused:
    return Refused(400, "value", f"“{key}” {problem}.", "Upload-Metadata")


def _text(metadata: Mapping[str, bytes], key: str) -> str:
    try:
        return metadata.get(key, b"").decode()
    except UnicodeDecodeError:
        raise Refused(422, "value", "This is not UTF-8 text.", key) from None


def _count(request: Request, name: str) -> int:
    text = request.headers.get(name, "")
    if not _NUMBER.fullmatch(text):
        raise Refused(400, "value", "This header must be a number of bytes.", name)
    return int(text)


def _check_type(request: Request) -> None:
    media_type = request.headers.get("Content-Type", "").partition(";")[0]
    if media_type.strip().lower() != CONTENT_TYPE:
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
    length = _count(request, "Upload-Length") if "Upload-Length" in request.headers else None
    return Chunk(offset, request.body(), algorithm, digest, on_conflict, length)

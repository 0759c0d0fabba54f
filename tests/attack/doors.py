"""All doors by which a user's files are written, copied, moved and deleted through the portal.

`Proxy` goes through the real HAProxy with a token; `Direct` speaks to another file server on the
login node, started as the user by the same command, which allows more requests per second.
"""

from __future__ import annotations

import base64
import io
import json
import secrets
import ssl
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

import requests

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.node.file_server.order import Order
from tests.support.client import Api, Json
from tests.support.cluster import Cluster

SOURCES = "home/sources"
ACROSS = "storage/across"
"""A link to another file system."""
PATIENCE = 30.0
_ID = "0123456789abcdef"
_TUS = {"Tus-Resumable": "1.0.0"}
_PIECE = {"Content-Type": "application/offset+octet-stream"}

Headers = Mapping[str, str]
NONE: Headers = {}
Body = bytes | None


@dataclass(frozen=True)
class Answer:
    """A response that was read completely."""

    status: int
    headers: Headers
    """By names in lower case."""
    body: bytes

    @property
    def json(self) -> Json:
        """The body as a JSON object; {} for anything else."""
        try:
            data = json.loads(self.body)
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}


class Client(Protocol):
    """A way to a user's file server."""

    def data(self, method: str, path: str, body: Body = None, headers: Headers = NONE) -> Answer:
        """Send a request below /data/."""

    def control(self, method: str, action: str, body: Json | None = None) -> Answer:
        """Send a request about files: `list/…`, `operations`, `rename/…`, `folder/…`."""

    def share(self, folder: str, user: str, access: str | None) -> Answer:
        """Share a storage folder for reading or writing, or take that back."""


class Proxy:
    """Through the portal and its HAProxy."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def data(self, method: str, path: str, body: Body = None, headers: Headers = NONE) -> Answer:
        url = f"{self._api.cluster.url}/data/{path}"
        return _answer(
            self._api.http.request(method, url, data=body, headers=headers, timeout=PATIENCE)
        )

    def control(self, method: str, action: str, body: Json | None = None) -> Answer:
        return _answer(self._api(method, f"/files/{action}", json=body))

    def share(self, folder: str, user: str, access: str | None) -> Answer:
        path = f"/folders/{folder}/shares/user/{user}"
        if access is None:
            return _answer(self._api("DELETE", path))
        return _answer(self._api("PUT", path, json={"access": access}))


def _answer(response: requests.Response) -> Answer:
    return Answer(response.status_code, _lower(response.headers), response.content)


def _lower(headers: Mapping[str, str]) -> Headers:
    return {name.lower(): value for name, value in headers.items()}


class _Named(HTTPSConnection):
    """A connection that asks for a name, as HAProxy does by `sni`."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext, name: str) -> None:
        super().__init__(*address, context=context, timeout=PATIENCE)
        self._name, self._tls = name, context

    def connect(self) -> None:
        super(HTTPSConnection, self).connect()
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


class DirectServer:
    """A file server of a user's own on the login node."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self._start(cluster, user, Path(folder) / "ca")

    def _start(self, cluster: Cluster, user: str, authorities: Path) -> None:
        prepare_authorities(authorities, "portal")
        authority = CertificateAuthority(authorities)
        order = Order(
            _ID,
            authority.issue_gateway(_ID),
            authority.client_ca(),
            {"home": ".", "storage": "storage"},
            shared="storage",
        )
        text = json.dumps(asdict(order) | {"ports": [21000, 21999]})
        command = ("/usr/local/bin/slipway", "file-server")
        output = cluster.run("login", *command, user=user, stdin=text)
        place = json.loads(output.rpartition("\0")[2])
        self.address = (cluster.ctl("address", "login").strip(), int(place["port"]))
        self.context = ssl.create_default_context(cafile=str(authorities / "gateway_ca.pem"))
        self.context.load_cert_chain(str(authorities / "client.pem"))


class Direct:
    """One thread's connections to such a server."""

    def __init__(self, server: DirectServer) -> None:
        self._connections = {
            kind: _Named(server.address, server.context, f"{kind}.{_ID}.slipway")
            for kind in ("files", "control")
        }

    def data(self, method: str, path: str, body: Body = None, headers: Headers = NONE) -> Answer:
        return self._ask("files", method, f"/data/{path}", body, headers)

    def control(self, method: str, action: str, body: Json | None = None) -> Answer:
        if action.startswith("folder/"):
            method = "POST"
        text = None if body is None else json.dumps(body).encode()
        return self._ask("control", method, f"/v1/{action}", text, {})

    def share(self, folder: str, user: str, access: str | None) -> Answer:
        key = {"kind": "user", "name": user}
        if access is None:
            path = f"/v1/shares/storage/{folder}?{urlencode(key)}"
            return self._ask("control", "DELETE", path, None, {})
        body = json.dumps(key | {"access": access}).encode()
        return self._ask("control", "PUT", f"/v1/shares/storage/{folder}", body, {})

    def close(self) -> None:
        """End the connections."""
        for connection in self._connections.values():
            connection.close()

    def _ask(self, kind: str, method: str, path: str, body: Body, headers: Headers) -> Answer:
        connection = self._connections[kind]
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return Answer(response.status, _lower(dict(response.getheaders())), response.read())
        except (OSError, HTTPException):
            connection.close()
            raise


class Doors:
    """What a user does with files, by every door; answers are returned, not judged."""

    def __init__(self, client: Client) -> None:
        self.client = client

    # Contents

    def save(self, folder: str, name: str, text: bytes) -> Answer:
        """As the editor saves: only if the file is as it was opened."""
        path = f"files/{folder}/{name}"
        opened = self.client.data("HEAD", path)
        return self.client.data("PUT", path, text, {"If-Match": opened.headers.get("etag", "*")})

    def put(self, folder: str, name: str, text: bytes) -> Answer:
        """Write a file."""
        return self.client.data("PUT", f"files/{folder}/{name}", text)

    def put_large(self, folder: str, name: str, text: bytes) -> Answer:
        """Write a file that is recorded while it is written."""
        return self.client.data("PUT", f"files/{folder}/{name}", text * (9 * 2**20 // len(text)))

    def dav_put(self, folder: str, name: str, text: bytes) -> Answer:
        """Write a file by WebDAV, with a time."""
        headers = {"X-OC-Mtime": "1700000000"}
        return self.client.data("PUT", f"dav/{folder}/{name}", text, headers)

    def tus_whole(self, folder: str, name: str, text: bytes) -> Answer:
        """Upload a file with its creation."""
        return self._create(folder, name, len(text), text)

    def tus_pieces(self, folder: str, name: str, text: bytes) -> Answer:
        """Upload a file in two pieces after its creation."""
        answer = self._create(folder, name, len(text))
        half = len(text) // 2
        for start, piece in ((0, text[:half]), (half, text[half:])):
            if answer.status >= 300:
                break
            answer = self.append(answer, start, piece)
        return answer

    def tus_joined(self, folder: str, name: str, text: bytes) -> Answer:
        """Upload a file in two parts, which are joined."""
        half, places = len(text) // 2, []
        for piece in (text[:half], text[half:]):
            headers = {**_TUS, **_PIECE, "Upload-Concat": "partial"}
            headers["Upload-Length"] = str(len(piece))
            answer = self.client.data("POST", "uploads/", piece, headers)
            places.append(answer.headers.get("location", ""))
        headers = {**_TUS, "Upload-Concat": f"final;{' '.join(places)}"}
        headers["Upload-Metadata"] = _metadata(folder, name)
        return self.client.data("POST", "uploads/", None, headers)

    def begin(self, folder: str, name: str, length: int) -> Answer:
        """Begin an upload."""
        return self._create(folder, name, length)

    def append(self, created: Answer, start: int, piece: bytes) -> Answer:
        """Send a piece of an upload."""
        place = created.headers.get("location", "")
        headers = {**_TUS, **_PIECE, "Upload-Offset": str(start)}
        answer = self.client.data("PATCH", place.partition("/data/")[2], piece, headers)
        return Answer(answer.status, {**answer.headers, "location": place}, answer.body)

    def give_up(self, created: Answer) -> Answer:
        """End an upload that is not complete."""
        place = created.headers.get("location", "").partition("/data/")[2]
        return self.client.data("DELETE", place, None, _TUS)

    def _create(self, folder: str, name: str, length: int, text: bytes = b"") -> Answer:
        headers = {**_TUS, "Upload-Length": str(length), "Upload-Metadata": _metadata(folder, name)}
        if text:
            headers |= _PIECE
        return self.client.data("POST", "uploads/", text or None, headers)

    # Copies and moves; their sources are the user's own

    def dav_copy(self, folder: str, name: str, text: bytes) -> Answer:
        """Copy a file by WebDAV."""
        self.put(SOURCES, name, text)
        return self._dav("COPY", f"{SOURCES}/{name}", f"{folder}/{name}")

    def dav_copy_new(self, folder: str, name: str, text: bytes) -> Answer:
        """Copy a file by WebDAV to a name that is new."""
        self.put(SOURCES, name, text)
        return self._dav("COPY", f"{SOURCES}/{name}", f"{folder}/{_new(name)}", "F")

    def dav_copy_tree(self, folder: str, name: str, text: bytes) -> Answer:
        """Copy a folder by WebDAV to a name that is new."""
        return self._dav("COPY", f"{SOURCES}/tree", f"{folder}/{_new(name)}")

    def dav_move(self, folder: str, name: str, text: bytes) -> Answer:
        """Move a file by WebDAV inside of a file system."""
        self.put(SOURCES, name, text)
        return self._dav("MOVE", f"{SOURCES}/{name}", f"{folder}/{name}")

    def dav_move_across(self, folder: str, name: str, text: bytes) -> Answer:
        """Move a file by WebDAV from another file system."""
        self.put(ACROSS, name, text)
        return self._dav("MOVE", f"{ACROSS}/{name}", f"{folder}/{name}")

    def _dav(self, method: str, path: str, to: str, overwrite: str = "T") -> Answer:
        headers = {"Destination": f"/data/dav/{to}", "Overwrite": overwrite}
        return self.client.data(method, f"dav/{path}", None, headers)

    def op_copy(self, folder: str, name: str, text: bytes) -> Answer:
        """Copy a file by an operation."""
        self.put(SOURCES, name, text)
        return self.operate("copy", f"{SOURCES}/{name}", folder)

    def op_copy_tree(self, folder: str, name: str, text: bytes) -> Answer:
        """Copy a folder by an operation; its name is the folder's."""
        return self.operate("copy", f"{SOURCES}/tree", folder)

    def op_move(self, folder: str, name: str, text: bytes) -> Answer:
        """Move a file by an operation inside of a file system."""
        self.put(SOURCES, name, text)
        return self.operate("move", f"{SOURCES}/{name}", folder)

    def op_move_across(self, folder: str, name: str, text: bytes) -> Answer:
        """Move a file by an operation from another file system."""
        self.put(ACROSS, name, text)
        return self.operate("move", f"{ACROSS}/{name}", folder)

    def op_unpack(self, folder: str, name: str, text: bytes) -> Answer:
        """Unpack an archive to a name that is new."""
        archive = f"{_new(name)}.tar"
        self.put(SOURCES, archive, _archive(name, text))
        return self.operate("unpack", f"{SOURCES}/{archive}", folder)

    def begin_operation(
        self, kind: str, item: str, to: str = "", conflict: str = "replace", mode: str = ""
    ) -> Answer:
        """Begin an operation."""
        order: Json = {"kind": kind, "items": [item]}
        if to:
            order |= {"to": to, "on_conflict": conflict}
        if mode:
            order |= {"mode": mode}
        return self.client.control("POST", "operations", order)

    def operate(
        self, kind: str, item: str, to: str = "", conflict: str = "replace", mode: str = ""
    ) -> Answer:
        """Do an operation and wait for its end."""
        return self.ended(self.begin_operation(kind, item, to, conflict, mode))

    def ended(self, answer: Answer) -> Answer:
        """Wait for the end of an operation."""
        number = str(answer.json.get("id", ""))
        deadline = time.monotonic() + PATIENCE
        while answer.json.get("state") in ("waiting", "running") and time.monotonic() < deadline:
            time.sleep(0.005)
            answer = self.client.control("GET", f"operations/{number}")
        return answer

    # The rest

    def others(self, folder: str, name: str) -> dict[str, Callable[[], Answer]]:
        """What else is done in a folder, by name."""
        path = f"{folder}/{name}"
        ask, change = self.client.data, self.client.control
        return {
            "get": lambda: ask("GET", f"files/{path}"),
            "dav_get": lambda: ask("GET", f"dav/{path}"),
            "list": lambda: change("GET", f"list/{folder}"),
            "propfind": lambda: ask("PROPFIND", f"dav/{folder}", None, {"Depth": "1"}),
            "zip": lambda: ask("GET", f"archive/{folder}"),
            "tar": lambda: ask("GET", f"archive/{folder}?format=tar"),
            "zip_of_one": lambda: ask("GET", f"archive/{folder}?name={name}"),
            "usage": lambda: change("GET", f"usage/{folder}"),
            "search": lambda: change("GET", f"search/{folder}?text=e"),
            "mode": lambda: self.operate("mode", path, mode="777"),
            "mode_back": lambda: self.operate("mode", path, mode="640"),
            "mode_of_all": lambda: self.operate("mode", folder, mode="750"),
            "make_folder": lambda: change("PUT", f"folder/{path}"),
            "mkcol": lambda: ask("MKCOL", f"dav/{path}"),
            "rename": lambda: change("POST", f"rename/{path}", {"name": f"{name}.old"}),
            "delete": lambda: ask("DELETE", f"files/{path}"),
            "dav_delete": lambda: ask("DELETE", f"dav/{path}"),
            "op_delete": lambda: self.operate("delete", path),
        }


def _metadata(folder: str, name: str) -> str:
    """The header Upload-Metadata."""
    fields = {"path": f"{folder}/{name}", "on_conflict": "replace", "modified": "1700000000"}
    return ",".join(f"{key} {base64.b64encode(v.encode()).decode()}" for key, v in fields.items())


def _archive(name: str, text: bytes) -> bytes:
    """A tar file with a folder that contains a file and a link."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for path in ("tree", "tree/deep"):
            member = tarfile.TarInfo(path)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        member = tarfile.TarInfo(f"tree/deep/{name}")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
        member = tarfile.TarInfo("tree/link")
        member.type, member.linkname = tarfile.SYMTYPE, f"deep/{name}"
        archive.addfile(member)
    return written.getvalue()


def _new(name: str) -> str:
    return f"{secrets.token_hex(4)}-{name}"


FILE_DOORS: dict[str, Callable[[Doors, str, str, bytes], Answer]] = {
    door.__name__: door
    for door in (
        Doors.save,
        Doors.put,
        Doors.put_large,
        Doors.dav_put,
        Doors.tus_whole,
        Doors.tus_pieces,
        Doors.tus_joined,
        Doors.dav_copy,
        Doors.dav_move,
        Doors.dav_move_across,
        Doors.op_copy,
        Doors.op_move,
        Doors.op_move_across,
    )
}
"""They put one file in the place of another."""
EVERY_DOOR = FILE_DOORS | {
    door.__name__: door
    for door in (Doors.dav_copy_new, Doors.dav_copy_tree, Doors.op_copy_tree, Doors.op_unpack)
}

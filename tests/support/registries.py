"""A registry of images on loopback that answers as a test says, also as no registry does."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from portal.node.batch.image import ImageError, sif
from portal.node.batch.image.registry import Login, Registry
from portal.node.common.reference import parse

HERE = sif.architecture()
OTHER = "arm64" if HERE == "amd64" else "amd64"
MANIFEST = "/v2/team/tool/manifests/1"


def encoded(data: Any) -> bytes:
    """JSON, or what is given as bytes."""
    return data if isinstance(data, bytes) else json.dumps(data).encode()


def digest_of(data: Any) -> str:
    """The digest by which a registry names it."""
    return "sha256:" + hashlib.sha256(encoded(data)).hexdigest()


def blob(data: Any, **changes: Any) -> dict[str, Any]:
    """What a manifest or an index says of a document."""
    return {"digest": digest_of(data), "size": len(encoded(data)), **changes}


def layer(size: Any = 7) -> dict[str, Any]:
    """What a manifest says of a layer."""
    return {"digest": "sha256:" + "1" * 64, "size": size}


class FakeRegistry(ThreadingHTTPServer):
    """Answers by path; those of /v2/ only with the header that `wanted` says, if `challenge` does.

    `raw` has whole responses in pieces, from the status line on.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[str, bytes]] = {}
        self.redirects: dict[str, str] = {}
        self.raw: dict[str, Iterable[bytes]] = {}
        self.challenge = ""
        self.wanted = ""
        self.asked: list[tuple[str, str]] = []

    @property
    def host(self) -> str:
        """As references name it."""
        return f"127.0.0.1:{self.server_port}"

    def put(self, path: str, data: Any, kind: str = "application/json") -> str:
        """Serve a document by this path, and by its digest; returns that."""
        for name in (path, path.rpartition("/")[0] + "/" + digest_of(data)):
            self.answers[name] = (kind, encoded(data))
        return digest_of(data)

    def image(self, tag: str, architecture: str = HERE, size: int = 7) -> str:
        """Serve an image of two layers; returns its digest."""
        config = {"architecture": architecture}
        self.put("/v2/team/tool/blobs/x", config)
        manifest = {"config": blob(config), "layers": [layer(size), layer(1)]}
        return self.put(f"/v2/team/tool/manifests/{tag}", manifest)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asks may hang up."""


class Handler(BaseHTTPRequestHandler):
    """One connection to it."""

    server: FakeRegistry

    def do_GET(self) -> None:
        """Answer."""
        given = self.headers.get("Authorization", "")
        path = self.path.partition("?")[0]
        self.server.asked.append((self.path, given))
        if path in self.server.raw:
            for piece in self.server.raw[path]:
                self.wfile.write(piece)
        elif path in self.server.redirects:
            self.send_response(307)
            self.send_header("Location", self.server.redirects[path])
            self.end_headers()
        elif self.server.challenge and path.startswith("/v2/") and given != self.server.wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", self.server.challenge)
            self.end_headers()
        elif path in self.server.answers:
            kind, body = self.server.answers[path]
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)
        else:
            self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the screen."""


@contextlib.contextmanager
def registry() -> Iterator[FakeRegistry]:
    """One that runs."""
    with FakeRegistry() as found:
        threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield found
        finally:
            found.shutdown()


LOGIN = Login("team", "s3cret")


def resolve_digest(
    server: FakeRegistry, what: str = ":1", login: Login | None = None
) -> tuple[str, int]:
    wanted = parse(f"docker://{server.host}/team/tool{what}")
    found = Registry(server.host, login, insecure=True).resolve(wanted)
    return found.digest, found.size


def refusal_of(server: FakeRegistry, what: str = ":1", login: Login | None = None) -> str:
    with pytest.raises(ImageError) as error:
        resolve_digest(server, what, login)
    return str(error.value).replace(server.host, "HOST")

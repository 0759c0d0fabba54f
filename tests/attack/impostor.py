"""Run by bob: listens where alice's gateway was, and notes whatever is said to him.

Standard library only. The arguments are a port, a PEM file to show (plain without one), and a file
for what was heard, a line for each connection.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import threading
import time

ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n"
    b"Connection: close\r\n\r\nevil"
)


def heard(stream: socket.socket, certificate: str) -> str:
    """What a client says, once it believes who we are; it gets our answer."""
    stream.settimeout(10)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        stream = context.wrap_socket(stream, server_side=True)
    data = stream.recv(65536)
    if data:
        stream.sendall(ANSWER)
    return data.decode("latin-1")


def converse(stream: socket.socket, certificate: str, notes: str) -> None:
    """Listen to one client and note how it went."""
    with stream:
        try:
            said, problem = heard(stream, certificate), ""
        except OSError as error:
            said, problem = "", str(error)
    with open(notes, "a", encoding="utf-8") as file:
        file.write(json.dumps({"said": said, "problem": problem}) + "\n")


def take(port: int) -> socket.socket:
    """Listen there as soon as the kernel lets us: for a minute it may not, after the last owner."""
    while True:
        try:
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=False
            )
        except OSError:
            time.sleep(0.2)


def main(port: str, certificate: str, notes: str) -> None:
    """Take every connection until we are ended."""
    server = take(int(port))
    with open(notes, "w", encoding="utf-8") as file:
        file.write(json.dumps({"pid": os.getpid()}) + "\n")
    while True:
        stream, _ = server.accept()
        threading.Thread(target=converse, args=(stream, certificate, notes), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Run by bob on the node where alice's session runs: tries every way in and prints what it found.

Standard library only: it is fed to the node's own Python, and to a notebook of bob's.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

HELLO = b"GET /api/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SECONDS = 3.0


def listeners() -> list[tuple[int, int]]:
    """All (port, user) that listen on TCP on this node."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                words = line.split()
                if words[3] == "0A":
                    found.add((int(words[1].rpartition(":")[2], 16), int(words[7])))
    return sorted(found)


def converse(stream: socket.socket) -> str:
    """Ask for a page; what comes back."""
    data = b""
    with contextlib.suppress(OSError):
        stream.sendall(HELLO)
        while part := stream.recv(65536):
            data += part
    return data.decode("latin-1")


def plain(port: int) -> str:
    """Ask without TLS."""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as stream:
        return converse(stream)


def tls(port: int, name: str, certificate: str) -> str:
    """Ask with TLS under a name, with a certificate of one's own or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate)
    with (
        socket.create_connection(("127.0.0.1", port), SECONDS) as stream,
        context.wrap_socket(stream, server_hostname=name) as secure,
    ):
        return converse(secure)


def knock(port: int, name: str, certificate: str) -> list[Any]:
    """One way to talk to a port (no name: without TLS), and what was answered."""
    said = ""
    with contextlib.suppress(OSError):
        said = tls(port, name, certificate) if name else plain(port)
    return [port, name, certificate, said]


def knock_at(ports: list[int], names: list[str], certificates: list[str]) -> list[list[Any]]:
    """Every way to talk to these ports, all at once; those that were answered."""
    ways = [(port, name, cert) for port in ports for name in names for cert in certificates]
    with ThreadPoolExecutor(16) as pool:
        return [answer for answer in pool.map(lambda way: knock(*way), ways) if answer[3]]


def unix_sockets() -> list[str]:
    """The sockets of this node that let us in."""
    entered = []
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        paths = {words[7] for line in file.readlines()[1:] if len(words := line.split()) > 7}
    for path in sorted(paths | set(glob.glob("/proc/*/root/var/tmp/.slipway/*.sock"))):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(SECONDS)
            stream.connect("\0" + path[1:] if path.startswith("@") else path)
            entered.append(path)
    return entered


def opened(paths: list[str]) -> list[str]:
    """Those of the files and folders that can be read."""
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            if os.path.isdir(path):
                os.listdir(path)
            else:
                with open(path, "rb") as file:
                    file.read(1)
            found.append(path)
    return found


def peek(user: int) -> tuple[int, list[str], list[str]]:
    """Of a user's processes: their number, what can be read of them, their command lines."""
    readable, lines, count = [], [], 0
    for process in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            if os.stat(process).st_uid == user:
                count += 1
                private = ("environ", "mem", "maps", "fd", "root/", "cwd/", "root/var/tmp/.slipway")
                readable += opened([f"{process}/{name}" for name in private])
            with open(f"{process}/cmdline", encoding="utf-8", errors="replace") as file:
                lines.append(file.read().replace("\0", " "))
    return count, readable, lines


def report(
    user: int, gateway: int, names: list[str], certificates: list[str], paths: list[str]
) -> str:
    """Try everything; the findings as JSON."""
    known = listeners()
    theirs = {port for port, owner in known if owner == user} | {gateway}
    count, readable, lines = peek(user)
    found = {
        "listening": [port for port, _ in known],
        "theirs": sorted(theirs),
        "answers": knock_at(sorted(theirs), ["", *names], certificates),
        "others": knock_at([port for port, _ in known if port not in theirs], [""], [""]),
        "sockets": unix_sockets(),
        "opened": opened(paths) + readable,
        "processes": count,
        "lines": lines,
    }
    return json.dumps(found)


if __name__ == "__main__":
    print(report(**json.loads(sys.argv[1])))

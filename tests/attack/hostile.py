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
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

HELLO = b"GET /api/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SECONDS = 3.0
LARGEST = 1 << 20

# What Slurm and the node tell everybody who asks.
QUESTIONS = (
    "ps axewwo args",
    "scontrol show job -dd",
    "scontrol show step",
    "scontrol show node",
    "squeue --all --json",
    "sacct --allusers --json",
    "sacct --allusers --format=ALL --parsable",
    "sacct --allusers --batch-script --jobs {job}",
    "sacct --allusers --env-vars --jobs {job}",
    "scontrol write batch_script {job} -",
    "scontrol listpids",
)
# Where things of everybody's lie about.
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/spool", "/var/log", "/home/alice", "/srv")


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


def addresses() -> list[str]:
    """By which addresses this node can be reached from itself."""
    return ["127.0.0.1", "::1", socket.gethostbyname(socket.gethostname())]


def plain(address: str, port: int) -> str:
    """Ask without TLS."""
    with socket.create_connection((address, port), SECONDS) as stream:
        return converse(stream)


def tls(address: str, port: int, name: str, certificate: str) -> str:
    """Ask with TLS under a name, with a certificate of one's own or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate)
    with (
        socket.create_connection((address, port), SECONDS) as stream,
        context.wrap_socket(stream, server_hostname=name) as secure,
    ):
        return converse(secure)


def knock(address: str, port: int, name: str, certificate: str) -> list[Any]:
    """One way to talk to a port (no name: without TLS), and what was answered."""
    said = ""
    with contextlib.suppress(OSError):
        said = tls(address, port, name, certificate) if name else plain(address, port)
    return [port, name, certificate, said]


def knock_at(ports: list[int], names: list[str], certificates: list[str]) -> list[list[Any]]:
    """Every way to talk to these ports, all at once; those that were answered."""
    ways = [
        (address, port, name, certificate)
        for address in addresses()
        for port in ports
        for name in names
        for certificate in certificates
    ]
    with ThreadPoolExecutor(16) as pool:
        return [answer for answer in pool.map(lambda way: knock(*way), ways) if answer[3]]


def stand_in(port: int) -> list[str]:
    """At which addresses a server of ours could take the place of the one that listens."""
    taken = []
    for address in addresses():
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            server.bind((address, port))
            server.listen()
            taken.append(address)
    return taken


def asked(job: str) -> dict[str, str]:
    """What every command says that tells of others."""
    said = {}
    for question in QUESTIONS:
        words = question.format(job=job).split()
        with contextlib.suppress(OSError):
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
            )
            said[question] = (done.stdout + done.stderr).decode(errors="replace")
    return said


def lying_about(canaries: list[str]) -> list[str]:
    """The readable files of common places that hold a canary."""
    found = []
    for place in PLACES:
        for folder, _, names in os.walk(place):
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError), open(path, "rb", opener=_at_once) as file:
                    data = file.read(LARGEST)
                    found += [path for canary in canaries if canary.encode() in data]
    return found


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe must not hold us up


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
    user: int,
    gateway: int,
    job: str,
    names: list[str],
    certificates: list[str],
    paths: list[str],
    canaries: list[list[str]],
) -> str:
    """Try everything; the findings as JSON. Canaries come in halves, not to be found in us."""
    known = listeners()
    theirs = {port for port, owner in known if owner == user} | {gateway}
    count, readable, lines = peek(user)
    secrets = ["".join(halves) for halves in canaries]
    said = asked(job)
    found = {
        "listening": [port for port, _ in known],
        "theirs": sorted(theirs),
        "answers": knock_at(sorted(theirs), ["", *names], certificates),
        "others": knock_at([port for port, _ in known if port not in theirs], [""], [""]),
        "stood_in": stand_in(gateway),
        "sockets": unix_sockets(),
        "opened": opened(paths) + readable,
        "processes": count,
        "lines": lines,
        "asked": [question for question, text in said.items() if job in text],
        "told": [q for q, text in said.items() for secret in secrets if secret in text],
        "found": lying_about(secrets),
    }
    return json.dumps(found)


if __name__ == "__main__":
    print(report(**json.loads(sys.argv[1])))

"""Run by bob on the node of alice's session: tries every kind of access and prints the findings.

Standard library only: it is run by the node's own Python and in a notebook of bob's.
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

# What Slurm and the node report to every user.
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
# Directories that every user can read.
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
    """Send a request for a page; the response."""
    data = b""
    with contextlib.suppress(OSError):
        stream.sendall(HELLO)
        while part := stream.recv(65536):
            data += part
    return data.decode("latin-1")


def addresses() -> list[str]:
    """The addresses at which this node reaches itself."""
    return ["127.0.0.1", "::1", socket.gethostbyname(socket.gethostname())]


def plain(address: str, port: int) -> str:
    """Connect without TLS."""
    with socket.create_connection((address, port), SECONDS) as stream:
        return converse(stream)


def tls(address: str, port: int, name: str, certificate: str) -> str:
    """Connect with TLS under a server name, with an own certificate or none."""
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


def probe(address: str, port: int, name: str, certificate: str) -> list[Any]:
    """Probe a port in one way (no name: without TLS); the arguments and the response."""
    output = ""
    with contextlib.suppress(OSError):
        output = tls(address, port, name, certificate) if name else plain(address, port)
    return [port, name, certificate, output]


def probe_all(ports: list[int], names: list[str], certificates: list[str]) -> list[list[Any]]:
    """Probe these ports in every combination, in parallel; the probes that got a response."""
    ways = [
        (address, port, name, certificate)
        for address in addresses()
        for port in ports
        for name in names
        for certificate in certificates
    ]
    with ThreadPoolExecutor(16) as pool:
        return [answer for answer in pool.map(lambda way: probe(*way), ways) if answer[3]]


def stand_in(port: int) -> list[str]:
    """The addresses at which our server could take the listening server's place."""
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


def public_reports(job: str) -> dict[str, str]:
    """The output of every command that reports about other users."""
    output = {}
    for question in QUESTIONS:
        words = question.format(job=job).split()
        with contextlib.suppress(OSError):
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
            )
            output[question] = (done.stdout + done.stderr).decode(errors="replace")
    return output


def lying_about(canaries: list[str]) -> list[str]:
    """The readable files of common places that contain a canary."""
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
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe must not block


def unix_sockets() -> list[str]:
    """The sockets of this node that accept our connection."""
    entered = []
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        paths = {words[7] for line in file.readlines()[1:] if len(words := line.split()) > 7}
    for path in sorted(paths | set(glob.glob("/proc/*/root/opt/slipway-run/*.sock"))):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(SECONDS)
            stream.connect("\0" + path[1:] if path.startswith("@") else path)
            entered.append(path)
    return entered


def opened(paths: list[str]) -> list[str]:
    """The readable ones of these files and folders."""
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
    """A user's processes: their number, what is readable of them, their command lines."""
    readable, lines, count = [], [], 0
    for process in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            if os.stat(process).st_uid == user:
                count += 1
                private = ("environ", "mem", "maps", "fd", "root/", "cwd/", "root/opt/slipway-run")
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
    """Try everything; the findings as JSON. Canaries come in halves, so as not to match here."""
    known = listeners()
    theirs = {port for port, owner in known if owner == user} | {gateway}
    count, readable, lines = peek(user)
    secrets = ["".join(halves) for halves in canaries]
    output = public_reports(job)
    found = {
        "listening": [port for port, _ in known],
        "theirs": sorted(theirs),
        "answers": probe_all(sorted(theirs), ["", *names], certificates),
        "others": probe_all([port for port, _ in known if port not in theirs], [""], [""]),
        "stood_in": stand_in(gateway),
        "sockets": unix_sockets(),
        "opened": opened(paths) + readable,
        "processes": count,
        "lines": lines,
        "asked": [question for question, text in output.items() if job in text],
        "told": [q for q, text in output.items() for secret in secrets if secret in text],
        "found": lying_about(secrets),
    }
    return json.dumps(found)


if __name__ == "__main__":
    print(report(**json.loads(sys.argv[1])))

"""The TCP addresses on which an app's processes listen, from /proc."""

from __future__ import annotations

import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    # An IP address in its usual form, and a port.
    Address = tuple[str, int]

LISTEN = "0A"
# Of addresses that an app can listen on, those that a connection to localhost reaches.
LOCAL = ("127.0.0.1", "0.0.0.0", "::", "::1")  # noqa: S104 - in the app's own namespace
MAPPED = "::ffff:"


def in_namespace_of(pid: int, proc: str = "/proc") -> set[Address]:
    """Return all listening addresses in the network namespace of a process."""
    return {address for address, _ in _listeners(pid, proc)}


def of_processes(pids: Iterable[int], proc: str = "/proc") -> set[Address]:
    """Return the addresses on which these processes themselves listen."""
    addresses: set[Address] = set()
    for pid in pids:
        inodes = set(_inodes(pid, proc))
        addresses |= {address for address, inode in _listeners(pid, proc) if inode in inodes}
    return addresses


def reaches(addresses: Iterable[Address], port: int) -> bool:
    """Whether a connection to localhost at this port is accepted."""
    return any(number == port and host in LOCAL for host, number in addresses)


def describe(addresses: Iterable[Address], port: int) -> str:
    """The ports, and the addresses at `port` itself: "port 5000", "127.0.1.1 port 8080"."""
    ordered = sorted(addresses, key=lambda address: (address[1], address[0]))
    texts = [
        f"{host} port {port}" if number == port else f"port {number}" for host, number in ordered
    ]
    return " and ".join(dict.fromkeys(texts))


def _listeners(pid: int, proc: str) -> Iterator[tuple[Address, str]]:
    """Address and inode of each listening socket."""
    for name in ("tcp", "tcp6"):
        try:
            with open(f"{proc}/{pid}/net/{name}", encoding="ascii") as file:
                lines = file.read().splitlines()[1:]
        except OSError:  # it has ended, or the node has no IPv6
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == LISTEN:
                host, _, port = fields[1].partition(":")
                yield (_host(host), int(port, 16)), fields[9]


def _host(text: str) -> str:
    """Parse an address that the kernel printed as 32-bit words in the machine's byte order."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, packed).removeprefix(MAPPED)


def _inodes(pid: int, proc: str) -> Iterator[str]:
    try:
        for name in os.listdir(f"{proc}/{pid}/fd"):
            target = os.readlink(f"{proc}/{pid}/fd/{name}")
            if target.startswith("socket:["):
                yield target[8:-1]
    except OSError:
        return

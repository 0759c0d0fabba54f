"""Runs an app that can only listen on TCP where nobody else can reach it.

`netns.py HAPROXY CONFIG PROGRAM ARGUMENT…`, a process of its own, since only one with a single
thread may enter a user namespace. The app gets a network of its own, in which there is loopback and
nothing else: no neighbour on the node, nor anybody outside, can connect to its port, and it cannot
connect to anything. HAProxy stands in that network too and hands on to the port what comes over
the app's unix socket, since the file system is still the same.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys

PORT = 8080
CONFIG = """\
global
    maxconn 1000
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 24h
    timeout server 24h
    retries 0
listen app
    bind unix@{path} mode 600
    server app 127.0.0.1:{port}
"""
# From sched.h, prctl.h, sockios.h and if.h; Python's own os.unshare came with 3.12.
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def wrap(toolkit: str, path: str, config: str, argv: list[str]) -> list[str]:
    """Write HAProxy's configuration and return the command that runs `argv` in there."""
    with open(config, "w", encoding="ascii") as file:
        file.write(CONFIG.format(path=path, port=PORT))
    return [sys.executable, "-IS", __file__, f"{toolkit}/bin/haproxy", config, *argv]


def enter(library: ctypes.CDLL) -> None:
    """Enter a user namespace, in which everybody stays who they are, and a network of its own."""
    user, group = os.getuid(), os.getgid()
    _must(library.unshare(CLONE_NEWUSER | CLONE_NEWNET))
    for file, text in (
        ("setgroups", "deny"),  # the kernel's condition for writing the next two
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as target:
            target.write(text)
    _bring_up("lo")


def _bring_up(interface: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", interface.encode(), 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(control, SIOCGIFFLAGS, request), 16)
        request = struct.pack("16sh14x", interface.encode(), flags | IFF_UP)
        fcntl.ioctl(control, SIOCSIFFLAGS, request)


def _forward(library: ctypes.CDLL, haproxy: str, config: str) -> None:
    parent = os.getpid()
    if os.fork() != 0:
        return
    # It ends with the app, however the app ends.
    library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        if os.getppid() == parent:
            os.execv(haproxy, [haproxy, "-q", "-db", "-f", config])  # noqa: S606 - no shell wanted
    finally:
        os._exit(1)


def _must(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main(arguments: list[str]) -> int:
    """Enter, start HAProxy, and become the app."""
    haproxy, config, *argv = arguments
    library = ctypes.CDLL(None, use_errno=True)
    try:
        enter(library)
        _forward(library, haproxy, config)
        os.execv(argv[0], argv)  # noqa: S606 - the app itself, as the runner has put it together
    except OSError as error:
        print(f"This node gives no app a network of its own: {error}", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

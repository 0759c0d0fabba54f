"""Run an app that can listen only on TCP, in its own network namespace.

`netns.py HAPROXY CONFIG PROGRAM ARGUMENT…`, a separate process, since only a single-threaded one
may enter a user namespace. The network namespace has only a loopback interface: no other user or
host can connect to the app's port, and the app cannot connect to anything. HAProxy runs in the same
namespace and forwards connections from the app's unix socket to the port, since the file system is
shared.
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
    # An app may listen on ::1 alone: then the first server refuses, and the other is tried at once.
    retries 1
    option redispatch 1
listen app
    bind unix@{path} mode 600
    balance roundrobin
    use-server ipv4 if TRUE
    server ipv4 127.0.0.1:{port}
    server ipv6 [::1]:{port}
"""
# From sched.h, prctl.h, sockios.h and if.h; os.unshare is new in Python 3.12.
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def wrap(toolkit: str, path: str, config: str, argv: list[str]) -> list[str]:
    """Write HAProxy's configuration and return the command that runs `argv` in the namespace."""
    with open(config, "w", encoding="ascii") as file:
        file.write(CONFIG.format(path=path, port=PORT))
    return [sys.executable, "-IS", __file__, f"{toolkit}/bin/haproxy", config, *argv]


def enter(library: ctypes.CDLL) -> None:
    """Enter a user namespace with an identity mapping, and a network namespace."""
    user, group = os.getuid(), os.getgid()
    _must(library.unshare(CLONE_NEWUSER | CLONE_NEWNET))
    for file, text in (
        ("setgroups", "deny"),  # required by the kernel before the next two
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
    # Kernels are interrupted with their whole process group.
    os.setpgid(0, 0)
    # HAProxy is killed whenever the app ends.
    library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        if os.getppid() == parent:
            os.execv(haproxy, [haproxy, "-q", "-db", "-f", config])
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
        os.execv(argv[0], argv)
    except OSError as error:
        print(f"This node does not permit network namespaces: {error}", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

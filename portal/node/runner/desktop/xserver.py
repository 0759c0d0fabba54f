"""TigerVNC's X server, on a private unix socket and nothing else."""

from __future__ import annotations

import os
import secrets
import select
import socket
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

PATIENCE: Final = 30.0
"""Seconds in which the X server must be ready."""
SIZE: Final = "1280x800"
"""The initial size, until the first window requests its own."""
_FAMILY_WILD, _FAMILY_LOCAL = 65535, 256


class NoServer(Exception):
    """The X server does not start."""


def write_authority(path: str) -> None:
    """Create the file of the cookie without which no program may draw; only its owner reads it."""
    cookie = secrets.token_bytes(16)
    entries = (
        _entry(_FAMILY_LOCAL, socket.gethostname().encode(), cookie),
        # For programs that know another name of this host.
        _entry(_FAMILY_WILD, b"", cookie),
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(b"".join(entries))


def _entry(family: int, address: bytes, cookie: bytes) -> bytes:
    # An empty display number means every display.
    fields = (address, b"", b"MIT-MAGIC-COOKIE-1", cookie)
    return family.to_bytes(2, "big") + b"".join(len(f).to_bytes(2, "big") + f for f in fields)


def words(toolkit: str, socket_path: str, authority: str, fd: int, name: str) -> list[str]:
    """The X server's command; it writes the number of its display to `fd`."""
    return [
        f"{toolkit}/bin/Xvnc", "-displayfd", str(fd), "-auth", authority, "-geometry", SIZE,
        # No port, and no abstract socket, which would be visible to all users of the node.
        "-rfbport", "-1", "-rfbunixpath", socket_path, "-rfbunixmode", "0600",
        "-nolisten", "tcp", "-nolisten", "local",
        # The gateway has authenticated all clients of the socket.
        "-SecurityTypes", "None", "-AlwaysShared", "-desktop", name or "Desktop",
        "-xkbdir", f"{toolkit}/share/xkb", "-depth", "24", "-noreset", "-s", "0",
        # Text selected with the mouse does not replace the browser's clipboard.
        "-SendPrimary=0", "-MaxCutText", str(8 * 1024 * 1024), "-Log", "*:stderr:10",
    ]  # fmt: skip


def start(toolkit: str, folder: str, name: str, options: tuple[str, ...] = ()) -> tuple[
    subprocess.Popen[bytes], str
]:  # fmt: skip
    """Start the X server; returns its process and its display, such as ":0", once it is ready.

    Raises NoServer.
    """
    reading, writing = os.pipe()
    command = words(toolkit, f"{folder}/vnc.sock", f"{folder}/Xauthority", writing, name)
    try:
        # It looks for xkbcomp in this folder, see images/toolkit/desktop/build.sh.
        process = subprocess.Popen(
            [*command, *options], cwd=f"{toolkit}/bin", stdin=subprocess.DEVNULL, pass_fds=[writing]
        )
    finally:
        os.close(writing)
    try:
        display = _read_line(reading)
    finally:
        os.close(reading)
    if not display:
        process.kill()
        process.wait()
        raise NoServer("The X server has not started; its last lines say why.")
    return process, f":{display}"


def _read_line(descriptor: int) -> str:
    """Read a line; "" at the end of the file or after a timeout."""
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([descriptor], [], [], PATIENCE)[0]:
            return ""
        piece = os.read(descriptor, 100)
        if not piece:
            return ""
        line += piece
    return line.decode().strip()

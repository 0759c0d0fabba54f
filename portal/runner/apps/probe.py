"""Whether an app answers on its socket, whether it computes, and what it wants to be shown."""

from __future__ import annotations

import re
import socket

from .. import wire

TIMEOUT = 5.0
# Short: a heartbeat waits for it.
BUSY_TIMEOUT = 2.0
LONGEST_DETAILS = 4096


def answers(path: str, kind: str, ready: str) -> bool:
    """Whether the app behind a unix socket is ready: SSH's banner, or a page that is no error."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(TIMEOUT)
        try:
            stream.connect(path)
            return _has_banner(stream) if kind == "ssh" else wire.probe(stream, ready) < 500
        except OSError:
            return False


def computes(path: str, page: str, expression: str) -> bool:
    """Whether the app says on a page that it computes, or is too busy to say anything."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(BUSY_TIMEOUT)
        try:
            stream.connect(path)
            status, body = wire.get(stream, page)
        except TimeoutError:
            return True
        except OSError:
            return False
    return status < 400 and re.search(expression, body.decode(errors="replace")) is not None


def read_details(path: str) -> str:
    """What the app has written for its owner before it was ready; "" for nothing."""
    try:
        with open(path, "rb") as file:
            text = file.read(LONGEST_DETAILS).decode(errors="replace")
    except OSError:
        return ""
    return text.replace("\0", "").strip()


def _has_banner(stream: socket.socket) -> bool:
    with stream.makefile("rb") as reader:
        return reader.read(4) == b"SSH-"

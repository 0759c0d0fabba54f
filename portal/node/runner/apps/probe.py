"""Whether an app is computing, and its details."""

from __future__ import annotations

import re
import socket

from .. import wire

# Short: a heartbeat waits for it.
BUSY_TIMEOUT = 2.0
LONGEST_DETAILS = 4096


def computes(path: str, page: str, expression: str) -> bool:
    """Whether the response matches, so that the app is computing, or it is too busy to respond."""
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
    """The details that the app wrote for its owner before it was ready; "" for none."""
    try:
        with open(path, "rb") as file:
            text = file.read(LONGEST_DETAILS).decode(errors="replace")
    except OSError:
        return ""
    return text.replace("\0", "").strip()

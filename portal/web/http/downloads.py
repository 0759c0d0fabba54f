"""Downloads: sent in pieces, few at a time per account, with safe names."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import cast
from urllib.parse import quote

from flask import Response, current_app

from portal.errors import TooMany

AT_ONCE = 2
"""Downloads of one account in this process; each occupies one of its threads."""
BUSY = (
    f"You are downloading {AT_ONCE} files already. Try again when one of them is complete, or "
    "cancel one."
)


class Downloads:
    """Counts the downloads that are being sent; shared by the threads of this process."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()

    def begin(self, account: str) -> Callable[[], None]:
        """Count a download; returns the function that ends it, once. Raises TooMany."""
        with self._lock:
            if self._running[account] >= self._at_once:
                raise TooMany(BUSY)
            self._running[account] += 1
        ended = threading.Lock()

        def end() -> None:
            if ended.acquire(blocking=False):
                with self._lock:
                    self._running[account] -= 1
                    self._running += Counter()  # drops accounts with none

        return end


def _downloads() -> Downloads:
    """The counter of the running application."""
    return cast(Downloads, current_app.extensions.setdefault("slipway_downloads", Downloads()))


def send_download(
    account: str, name: str, pieces: Iterator[bytes], size: int | None = None
) -> Response:
    """A response that sends a text file in pieces; raises TooMany.

    `size`: bytes, if known.
    """
    end = _downloads().begin(account)
    response = Response(_until(pieces, end), content_type="text/plain; charset=utf-8")
    # Also called if the client has left before the first piece, and for HEAD.
    response.call_on_close(end)
    if size is not None:
        response.content_length = size
    response.headers["Content-Disposition"] = disposition(name)
    return response


def _until(pieces: Iterator[bytes], end: Callable[[], None]) -> Iterator[bytes]:
    yield from pieces
    end()


def disposition(name: str) -> str:
    """A Content-Disposition header for a file of any name (RFC 6266)."""
    plain = re.sub(r"[^0-9A-Za-z._+-]+", "-", name)
    if plain == name:
        return f'attachment; filename="{name}"'
    # An ASCII name for clients that support no other.
    words = f"attachment; filename=\"{plain}\"; filename*=UTF-8''"
    return words + quote(name, safe="", errors="replace")

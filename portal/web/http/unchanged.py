"""Answers polls of pages that have not changed, before the application does anything.

The ETag of a poll's response names, signed, the counts of changes that the content shows
(store/changes.py), and the time until which it holds. While they are the same, the next poll costs
one read of the database, in any process and on any host, instead of reading and rendering the
content again.
"""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

from portal.core.changes import NOT_SHOWN, ChangeNumbers
from portal.errors import DatabaseUnavailable
from portal.web.http.wsgi_types import Environ, StartResponse, Wsgi

LONGEST = 60.0
"""Seconds after which content is rendered again at the latest, since some of it depends on the
time."""
USE_LONGEST = 30.0
"""The same where the cluster's use has changed, as it does all the time, and nothing else."""
HIDDEN_LONGEST = 600.0
"""The same for pages that nobody sees: only what is rendered notices that a login has expired."""
HIDDEN = "HTTP_SLIPWAY_HIDDEN"
"""Key in the WSGI environment of the header with which the page says that it is hidden."""
POLL = "slipway.poll"
"""Key in the WSGI environment with the Poll that a view answers."""
HEADERS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
_SEPARATOR = "~"
VISIBLE = "Slipway-Visible"
"""Header of polls of a page that is visible (client/common/poll.js). A mark holds for polls with or
without it: the first one after the page has been shown reaches the application, which notes it."""
_FORM = "2"
"""Of what is signed: raise it with each change, since pages stay open during an update."""
_SCOPE = (
    "PATH_INFO",
    "QUERY_STRING",
    "HTTP_COOKIE",
    "HTTP_AUTHORIZATION",
    f"HTTP_{VISIBLE.upper().replace('-', '_')}",
)


@dataclass(frozen=True)
class Poll:
    """What a poll's response shows: whose changes, and their counts before it was rendered."""

    person: str
    numbers: ChangeNumbers
    until: float = math.inf
    """When the content changes although the counts do not (Unix time); a view may say so."""


class Unchanged:
    """Answers 204 to polls whose counts are the same, and signs the ETags of other polls.

    The header `repeated` of a rendered response is also part of the answers 204 that follow it.
    `count` is called for each of these, which no other measurement sees, with its seconds.
    """

    def __init__(
        self,
        app: Wsgi,
        secret: str,
        numbers: Callable[[str], ChangeNumbers],
        now: Callable[[], float],
        repeated: str,
        count: Callable[[float], None],
    ) -> None:
        self._app = app
        self._count = count
        self._repeated = repeated
        self._key = secret.encode()
        self._numbers = numbers
        self._now = now

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request."""
        began = time.monotonic()
        mark = environ.get("HTTP_IF_NONE_MATCH", "").strip('"')
        if _SEPARATOR in mark:
            if self._is_current(mark, environ):
                value = mark.split(_SEPARATOR)[-4]
                repeated = [(self._repeated, value)] if value else []
                start_response("204 No Content", [*HEADERS, *repeated])
                self._count(time.monotonic() - began)
                return []
            # The application compares its content's hash.
            environ["HTTP_IF_NONE_MATCH"] = mark = mark.partition(_SEPARATOR)[0]

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            poll = environ.get(POLL)
            if isinstance(poll, Poll):
                headers = self._signed(status, headers, mark, poll, environ)
            return start_response(status, headers, *error)

        return self._app(environ, start)

    def _signed(
        self, status: str, headers: list[tuple[str, str]], mark: str, poll: Poll, environ: Environ
    ) -> list[tuple[str, str]]:
        values = {name.lower(): value for name, value in headers}
        content = values.get("etag", mark if status.startswith("204") else "").strip('"')
        if not content:
            return headers
        repeated = values.get(self._repeated.lower(), "")
        counts = [str(number) for number in astuple(poll.numbers)]
        now = self._now()
        times = str(int(now)), str(math.ceil(min(now + LONGEST, poll.until)))
        person = quote(poll.person, safe="")
        unsigned = _SEPARATOR.join([content, person, *counts, repeated, *times])
        others = [(key, value) for key, value in headers if key.lower() != "etag"]
        etag = f'"{unsigned}{_SEPARATOR}{self._signature(unsigned, environ)}"'
        return [*others, ("ETag", etag)]

    def _is_current(self, mark: str, environ: Environ) -> bool:
        unsigned, _, signature = mark.rpartition(_SEPARATOR)
        if not hmac.compare_digest(signature.encode(), self._signature(unsigned, environ).encode()):
            return False
        _content, person, *counts, _repeated, begin, end = unsigned.split(_SEPARATOR)
        age, hidden = self._now() - int(begin), HIDDEN in environ
        if not 0 <= age < (HIDDEN_LONGEST if hidden else int(end) - int(begin)):
            return False
        shown = ChangeNumbers(*map(int, counts))
        try:
            current = self._numbers(unquote(person))
        except DatabaseUnavailable:
            return False  # the application says so, as on other pages
        if replace(shown, use=current.use) != current:
            return False
        return hidden or shown.use in (NOT_SHOWN, current.use) or age < USE_LONGEST

    def _signature(self, unsigned: str, environ: Environ) -> str:
        """Of a mark for one address, login and visibility: it is of no use elsewhere."""
        scope = (environ.get(key, "") for key in _SCOPE)
        text = "\n".join((_FORM, unsigned, *scope))
        return hmac.new(self._key, text.encode(errors="replace"), "sha256").hexdigest()[:32]

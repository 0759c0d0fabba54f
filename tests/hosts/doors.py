"""Doors to apps at two portal hosts, and who tries all of them all the time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.support.client import Api, Visitor

MOST_OPEN_SECONDS = 5.0
"""A door that was shut so long ago must be closed at each host."""
WATCHED_SECONDS = 40.0
"""So long a shut door is tried in each round; after that now and then."""
_OPEN, _LIMITED = 200, 429
_PAUSE = 0.05


def at(visitor: Visitor, api: Api) -> Visitor:
    """The same browser, at another host: with the same cookies."""
    here, there = urlsplit(visitor.origin), urlsplit(api.cluster.url)
    name = here.netloc.partition(":")[0]
    found = Visitor(f"{here.scheme}://{name}:{there.port}/")
    found.http = visitor.http
    return found


def found(visitor: Visitor, words: str) -> str:
    """What is behind a door: "open" if the app answers with these words."""
    try:
        answer = visitor.get("/", timeout=3, allow_redirects=False)
    except requests.RequestException:
        return "closed"
    if answer.status_code == _LIMITED:
        return "limited"
    return "open" if answer.status_code == _OPEN and words in answer.text.lower() else "closed"


def reaches(visitor: Visitor, words: str = "ttyd") -> bool:
    """Whether requests reach the app, which answers with these words."""
    return found(visitor, words) == "open"


def ends(stream: ClientConnection, seconds: float = 2.0) -> bool:
    """Whether a stream is cut, after what was sent before."""
    try:
        while True:
            stream.recv(timeout=seconds)
    except ConnectionClosed:
        return True
    except TimeoutError:
        return False


@dataclass
class Door:
    """A way to an app, at each host."""

    user: str
    session: str
    words: str
    visitors: Sequence[Visitor]
    login: str = ""
    """The login that it was opened with; "" for a public one."""
    shut: float | None = None
    streams: list[ClientConnection] = field(default_factory=list)

    def close(self) -> None:
        """Note that it was shut now, as the portal has said."""
        if self.shut is None:
            self.shut = time.monotonic()


class Watch:
    """Tries all doors all the time; one that is open long after it was shut is noted."""

    def __init__(self) -> None:
        self.doors: list[Door] = []
        self.tried: Counter[str] = Counter()
        self.late: list[str] = []
        self._round = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(host,)) for host in (0, 1)]
        for thread in self._threads:
            thread.start()

    def _run(self, host: int) -> None:
        while not self._stop.wait(_PAUSE):
            self._round += 1
            for number, door in enumerate(list(self.doors)):
                old = door.shut is not None and time.monotonic() - door.shut > WATCHED_SECONDS
                if old and (number + self._round) % 50:
                    continue
                self._try(door, host)
                if self._stop.is_set():
                    return

    def _try(self, door: Door, host: int) -> None:
        shut, asked = door.shut, time.monotonic()
        behind = found(door.visitors[host], door.words)
        self.tried[f"{behind} {'before' if shut is None else 'after'}"] += 1
        # It may have been opened again, and shut again, while it was tried.
        if shut is None or door.shut != shut or asked - shut <= MOST_OPEN_SECONDS:
            return
        if behind == "open":
            self._note(f"{door.visitors[host].origin}, {asked - shut:.1f} s after it was shut")
        if host == 0:
            for stream in door.streams:
                self.tried["streams"] += 1
                if not ends(stream, 0.2):
                    self._note(f"a stream to {door.visitors[host].origin}")
                stream.close()
            door.streams.clear()

    def _note(self, text: str) -> None:
        self.late.append(text)
        print("LATE", text, flush=True)

    def stop(self) -> None:
        """End."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

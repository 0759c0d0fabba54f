"""Whether an app that has been started answers, and what was found if it does not."""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from .. import wire
from . import listening, netns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..spec import AppStart

BANNER = b"SSH-"
# How a TLS server answers what is not TLS: a record of the type alert.
TLS_ALERT = b"\x15\x03"
CONNECT_TIMEOUT = 2.0
# Seconds for which an answer is waited for at a time, so that a stop is noticed.
LOOK = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 0.015, 5.0
# While nothing accepts connections, the pauses are this share of the time that has passed.
SHARE, LONGEST_LOOK = 0.01, 1.0

SILENT = "it accepts connections, but has not answered"
CLOSES = "it closes connections without an answer"
TLS = "it expects TLS, not plain HTTP"

# What became of a request: REFUSED if nothing accepted it.
ANSWERED, WAITING, REFUSED, ENDED = "answered", "waiting", "refused", "ended"


class Question:
    """A request to the app behind a unix socket, sent again only when the last one has ended.

    Any HTTP response is an answer, whatever its status: an error page is the app's own. Of an SSH
    server (`kind`) it is the banner.
    """

    def __init__(self, path: str, kind: str, ready: str) -> None:
        self.finding = ""
        """Why the last request has no answer; "" if nothing has accepted one."""
        self._path = path
        self._ssh = kind == "ssh"
        self._request = b"" if self._ssh else wire.get_request(ready)
        self._stream: socket.socket | None = None
        self._received = b""

    @property
    def open(self) -> bool:
        """Whether a request is on its way."""
        return self._stream is not None

    def ask(self, seconds: float) -> str:
        """Send a request unless one is on its way, and wait as long for its answer."""
        try:
            stream = self._stream = self._stream or self._send()
        except OSError:
            return REFUSED
        try:
            stream.settimeout(seconds)
            part = stream.recv(wire.LONGEST_LINE)
        except TimeoutError:
            self.finding = SILENT
            return WAITING
        except OSError:
            part = b""
        self._received += part
        if part and not self._is_whole():
            return WAITING
        self.close()
        return ANSWERED if self._is_answer() else ENDED

    def close(self) -> None:
        """Give up the request that is on its way."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _send(self) -> socket.socket:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            stream.settimeout(CONNECT_TIMEOUT)  # its queue of connections may be full
            stream.connect(self._path)
        except OSError:
            stream.close()
            raise
        self._received = b""
        with suppress(OSError):  # closed already, as will be read
            stream.sendall(self._request)
        return stream

    def _is_whole(self) -> bool:
        length = len(self._received)
        enough = len(BANNER) if self._ssh else wire.LONGEST_LINE
        return b"\n" in self._received or length >= enough

    def _is_answer(self) -> bool:
        received = self._received
        if self._ssh:
            answer = received.startswith(BANNER)
        else:
            answer = wire.begins_response(received.partition(b"\n")[0])
        if not received:
            self.finding = CLOSES
        elif received.startswith(TLS_ALERT):
            self.finding = TLS
        elif not answer:
            self.finding = f"what it answers is not {'SSH' if self._ssh else 'HTTP'}"
        return answer


class Readiness:
    """Asks an app for `ready` until it answers, in growing pauses.

    `pid` is its first process, `processes` lists all of them. It is asked only once it listens.
    """

    def __init__(
        self, path: str, start: AppStart, pid: int, processes: Callable[[], Iterable[int]]
    ) -> None:
        self._question = Question(path, start.kind, start.ready)
        self._tcp = start.listen == "tcp"
        self._pid = pid
        self._processes = processes
        self._began = time.monotonic()
        self._pause = FIRST_PAUSE

    def answered(self) -> bool:
        """Whether it has answered; else this has waited a moment."""
        if not self._question.open and self._tcp and not self._listens():
            outcome = REFUSED
        else:
            outcome = self._question.ask(LOOK)
        if outcome == REFUSED:
            passed = time.monotonic() - self._began
            time.sleep(min(max(FIRST_PAUSE, SHARE * passed), LONGEST_LOOK))
        elif outcome == ENDED:
            time.sleep(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return outcome == ANSWERED

    def finding(self) -> str:
        """Why it does not answer, as far as that can be seen; "" if it cannot."""
        port = netns.PORT
        if self._tcp:
            addresses = listening.in_namespace_of(self._pid)
            if listening.reaches(addresses, port):
                return self._question.finding
            elsewhere = listening.describe(addresses, port)
            if elsewhere:
                return f"it listens on {elsewhere}, not on $PORT, which is {port}"
            return f"nothing listens on port {port}"
        elsewhere = listening.describe(listening.of_processes(self._processes()), 0)
        if not self._question.finding and elsewhere:
            return f"it listens on {elsewhere}, not on the socket $SLIPWAY_SOCKET"
        return self._question.finding

    def close(self) -> None:
        """End the request that is on its way."""
        self._question.close()

    def _listens(self) -> bool:
        return listening.reaches(listening.in_namespace_of(self._pid), netns.PORT)

"""Check whether a started app answers, and find out why it does not."""

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
# A TLS server's answer to anything but TLS: a record of the type alert.
TLS_ALERT = b"\x15\x03"
CONNECT_TIMEOUT = 2.0
# Timeout of each wait for an answer, so that a stop is noticed.
ANSWER_TIMEOUT = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 0.015, 5.0
# While nothing accepts connections, the pauses are this share of the time that has passed.
SHARE, LONGEST_REFUSED_PAUSE = 0.01, 1.0

SILENT = "it accepts connections, but has not answered"
CLOSES = "it closes connections without an answer"
TLS = "it expects TLS, not plain HTTP"

# Outcomes of a request; REFUSED if nothing accepted it.
ANSWERED, WAITING, REFUSED, ENDED = "answered", "waiting", "refused", "ended"


class ReadyRequest:
    """A request to the app behind a unix socket, sent again only after the last one has ended.

    Any HTTP response is an answer, whatever its status: an error page is the app's own. An SSH
    server (`kind`) answers with its banner.
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
        """Whether a request is pending."""
        return self._stream is not None

    def ask(self, seconds: float) -> str:
        """Send a request unless one is pending, and wait `seconds` for its answer."""
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
        """Cancel the pending request."""
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
        self._request = ReadyRequest(path, start.kind, start.ready)
        self._tcp = start.listen == "tcp"
        self._pid = pid
        self._processes = processes
        self._began = time.monotonic()
        self._pause = FIRST_PAUSE

    def answered(self) -> bool:
        """Whether it has answered; if not, this has paused briefly."""
        if not self._request.open and self._tcp and not self._listens():
            outcome = REFUSED
        else:
            outcome = self._request.ask(ANSWER_TIMEOUT)
        if outcome == REFUSED:
            passed = time.monotonic() - self._began
            time.sleep(min(max(FIRST_PAUSE, SHARE * passed), LONGEST_REFUSED_PAUSE))
        elif outcome == ENDED:
            time.sleep(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return outcome == ANSWERED

    def finding(self) -> str:
        """Return the visible reason why it does not answer, or ""."""
        port = netns.PORT
        if self._tcp:
            addresses = listening.in_namespace_of(self._pid)
            if listening.reaches(addresses, port):
                return self._request.finding
            elsewhere = listening.describe(addresses, port)
            if elsewhere:
                return f"it listens on {elsewhere}, not on $PORT, which is {port}"
            return f"nothing listens on port {port}"
        elsewhere = listening.describe(listening.of_processes(self._processes()), 0)
        if not self._request.finding and elsewhere:
            return f"it listens on {elsewhere}, not on the socket $SLIPWAY_SOCKET"
        return self._request.finding

    def close(self) -> None:
        """Cancel the pending request."""
        self._request.close()

    def _listens(self) -> bool:
        return listening.reaches(listening.in_namespace_of(self._pid), netns.PORT)

"""Reports from the job to the portal over TLS: ready, usage and the apps' states."""

from __future__ import annotations

import json
import random
import socket
import ssl
import threading
import time

from . import wire
from .log import say
from .peaks import Peaks
from .probe.causes import explain
from .spec import PATIENCE, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The only answer that ends a session, with one of these in its body: earlier portals have no code.
ENDED = 410
ENDED_CODE, ENDED_TITLE = "session_ended", "This session is over"
# The portal does not know the session, or not this runner's token: it may have lost its database.
UNKNOWN = frozenset({401, 404})
UNKNOWN_CODE = "session_unknown"
# Answers that say nothing about the session: from another program at the portal's address, or from
# a portal of another release.
SILENT = frozenset({403, 404, 405, 410, 421})
ANSWER_TIMEOUT = 15.0
LONGEST_PAUSE = 10.0
MOST_DELAYS = 5
# Bounds of the time until the next report of usage that the portal asks for.
SHORTEST_NEXT, LONGEST_NEXT = 1.0, 60.0


class SessionOver(Exception):
    """The portal reports that this session has ended."""


class SessionUnknown(Exception):
    """The portal does not know this session, or not this runner's token; it goes on."""


class Refused(Exception):
    """The portal refuses this message permanently; repeating it would not help."""


class Unreachable(Exception):
    """The portal cannot be reached right now, or has an internal error."""


class Callback:
    """One connection to the portal, kept open between reports; used by one thread at a time."""

    def __init__(self, spec: Spec) -> None:
        self._host, self._port = spec.callback
        self._token = spec.token
        self._path = f"/runner/v1/sessions/{spec.session}"
        self._ca = spec.callback_ca
        self._context: ssl.SSLContext | None = None
        self._stream: ssl.SSLSocket | None = None

    def connect(self) -> None:
        """Open the connection in advance; errors are ignored."""
        try:
            self._open()
        except (OSError, ssl.SSLError):
            self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def trust(self, ca: str) -> bool:
        """Trust other CAs if they verify the portal's certificate; returns whether they do."""
        previous = self._ca, self._context
        self.close()
        self._ca, self._context = ca, None
        self.connect()
        if self._stream is None:
            self._ca, self._context = previous
        return self._stream is not None

    def post(self, endpoint: str, message: dict[str, object]) -> dict[str, object]:
        """Send one report and return the answer.

        Raises SessionOver, SessionUnknown, Refused or Unreachable.
        """
        path, data = f"{self._path}/{endpoint}", json.dumps(message).encode()
        for _ in range(MOST_DELAYS):
            try:
                status, body = self._exchange(path, data)
                break
            except wire.TooOften as later:
                time.sleep(min(later.seconds, LONGEST_PAUSE))
        else:
            raise Unreachable("keeps answering 429")
        return read_answer(status, body)

    def _exchange(self, path: str, body: bytes) -> tuple[int, bytes]:
        # A kept connection may have been closed meanwhile; then the report is repeated on a new
        # one. All reports are idempotent.
        for fresh in (self._stream is None, True):
            try:
                stream = self._open()
                status, answer, reusable = wire.post(stream, self._host, path, self._token, body)
            except (OSError, ssl.SSLError) as error:
                self.close()
                if fresh:
                    raise Unreachable(explain(error, self._host, self._port)) from None
                continue
            if not reusable:
                self.close()
            return status, answer
        raise Unreachable("closed the connection")

    def _open(self) -> ssl.SSLSocket:
        if self._stream is None:
            if self._context is None:
                self._context = tls_context(self._ca)
            plain = socket.create_connection((self._host, self._port), timeout=ANSWER_TIMEOUT)
            try:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._stream = self._context.wrap_socket(plain, server_hostname=self._host)
            except BaseException:
                plain.close()
                raise
        return self._stream


def read_answer(status: int, body: bytes) -> dict[str, object]:
    """Parse the portal's answer; raises the exception of an error.

    Only the portal's own error code ends a session: a proxy or another program that answers in its
    place does not know the session.
    """
    try:
        answer = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Unreachable(f"answered {status} with something other than JSON")
    code = answer.get("code")
    if status == ENDED and (code == ENDED_CODE or answer.get("title") == ENDED_TITLE):
        raise SessionOver
    if status == 401 or (status in UNKNOWN and code == UNKNOWN_CODE):
        raise SessionUnknown(f"answered {status}")
    if status >= 500 or status in SILENT:
        raise Unreachable(f"answered {status}")
    if status >= 400:
        raise Refused(f"answered {status}: {body[:300].decode(errors='replace')}")
    return answer


def tls_context(ca: str) -> ssl.SSLContext:
    """Return a context that verifies the portal's certificate by the portal's own CA alone."""
    context = ssl.create_default_context(cadata=ca)
    # Many sites' own CAs lack extensions that the strict check requires.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def post_ready(
    callback: Callback,
    message: dict[str, object],
    patience: float = PATIENCE,
    unknown: Callable[[], object] = lambda: None,
) -> dict[str, object]:
    """Report ready until the portal accepts it; raise Unreachable after `patience` seconds.

    If the portal does not know the session, it has lost it: `unknown` is called, and the attempts
    continue as long as the job may run.
    """
    deadline = time.monotonic() + patience
    pause = 0.1
    while True:
        try:
            return callback.post("ready", message)
        except SessionUnknown:
            unknown()
            deadline = time.monotonic() + patience
        except Unreachable as error:
            if time.monotonic() + pause > deadline:
                minutes = f"{patience / 60:.0f} minute{'' if patience == 60 else 's'}"
                text = f"the portal could not be reached for {minutes}: {error}"
                raise Unreachable(text) from None
            say(f"The portal cannot be reached ({error}); trying again in {pause:.1f} s")
        time.sleep(spread(pause))
        pause = min(pause * 2, LONGEST_PAUSE)


def spread(seconds: float, least: float = 0.9) -> float:
    """A bit less, at random: sessions that started together do not call together for long."""
    return seconds * random.uniform(least, 1.0)  # noqa: S311 - no secret


def until_next(asked: float, usual: float) -> float:
    """The seconds until the next report, as the portal asks, up to LONGEST_NEXT, or to `usual` if
    that is longer.
    """
    return spread(max(SHORTEST_NEXT, min(max(LONGEST_NEXT, usual), asked)))


class Reporter:
    """Sends the apps' changes immediately, and usage when the portal's last answer asked for it.

    Usage is measured every `heartbeat` seconds, and sent each time if the answer had no time, as
    from portals of earlier releases, or if the portal was not reached.

    `unknown` is called when the portal does not know the session; it returns the seconds until the
    next usage is sent, if that is sooner.

    While the portal is unreachable, reports do not accumulate: only the newest state of each app
    and the newest usage are sent once it is back.
    """

    def __init__(
        self,
        callback: Callback,
        heartbeat: float,
        usage: Callable[[], dict[str, object]],
        over: Callable[[], None],
        answered: Callable[[dict[str, object]], None] = lambda _: None,
        unknown: Callable[[], float] = lambda: LONGEST_PAUSE,
    ) -> None:
        self._callback = callback
        self._heartbeat = heartbeat
        self._peaks = Peaks(usage, heartbeat / 2)
        self._over = over
        self._answered = answered
        self._unknown = unknown
        self._again = heartbeat
        self._detailed = False
        self._hurried = False
        self._news: dict[str, dict[str, object]] = {}
        self._changed = threading.Condition()
        self._away = False

    def app_changed(self, app: str, report: dict[str, object]) -> None:
        """Queue the newest state of one app; never blocks on the network."""
        with self._changed:
            self._news[app] = report
            self._changed.notify()

    def hurry(self) -> None:
        """Send the next usage at once."""
        with self._changed:
            self._hurried = True
            self._changed.notify()

    def run(self) -> None:
        """Report until the portal responds that the session is over."""
        # The first usage soon, for users who watch the session start.
        beat = report = time.monotonic() + spread(min(1.0, self._heartbeat), 0.0)
        try:
            while True:
                with self._changed:
                    # While the portal is unreachable, changes wait for the next heartbeat.
                    if self._away or not (self._news or self._hurried):
                        self._changed.wait(max(0.0, beat - time.monotonic()))
                    hurried = self._hurried and not self._away
                    due = time.monotonic() >= beat or hurried
                    self._hurried = False
                    news = {} if self._away and not due else self._news
                    if news:
                        self._news = {}
                self._send_news(news)
                if due and (hurried or time.monotonic() >= report):
                    self._send_usage()
                    report = time.monotonic() + self._again
                elif due:
                    self._peaks.measure()
                if due:
                    beat = min(report, time.monotonic() + self._heartbeat)
        except SessionOver:
            say("The portal reports that this session has ended")
            self._callback.close()
            self._over()

    def _send_usage(self) -> None:
        """Send the usage, and set the seconds until the next time."""
        self._again = spread(self._heartbeat)
        self._send("usage", self._peaks.report(self._detailed), self._usage_answered)

    def _usage_answered(self, answer: dict[str, object]) -> None:
        self._peaks.clear()
        seconds = answer.get("next")
        # A portal that names the time also knows the values since the last report.
        self._detailed = isinstance(seconds, int | float)
        if isinstance(seconds, int | float):
            self._again = until_next(seconds, self._heartbeat)
        self._answered(answer)

    def _send_news(self, news: dict[str, dict[str, object]]) -> None:
        for app, report in news.items():
            if not self._send(f"apps/{app}", report):
                with self._changed:
                    self._news.setdefault(app, report)

    def _send(
        self,
        endpoint: str,
        message: dict[str, object],
        answered: Callable[[dict[str, object]], None] = lambda _: None,
    ) -> bool:
        try:
            answered(self._callback.post(endpoint, message))
        except Refused as error:
            # Portals of earlier releases refuse fields that they do not know.
            self._detailed = False
            say(f"The portal does not accept a report on {endpoint}: {error}")
        except SessionUnknown:
            self._away = True
            self._again = min(self._unknown(), self._heartbeat)
            return False
        except Unreachable as error:
            if not self._away:
                say(f"The portal cannot be reached ({error}); open apps keep running")
            self._away = True
            return False
        if self._away:
            say("The portal is back")
        self._away = False
        return True

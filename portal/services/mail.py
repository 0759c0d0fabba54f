"""Messages by e-mail: looked for in the database, joined where they are many, and sent."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta

from portal.config.mail import MailSettings
from portal.core.interfaces.mail import MailServer, MailUnavailable
from portal.core.interfaces.systems import Clock
from portal.core.jobs.ends import explain_end
from portal.core.mail.messages import (
    SOON,
    Message,
    Occasion,
    job_messages,
    joined,
    session_messages,
)
from portal.errors import NotFound
from portal.store.jobs.store import JobStore
from portal.store.mail import MailStore
from portal.store.sessions import SessionStore

log = logging.getLogger(__name__)

OVERLAP = timedelta(minutes=15)
"""Events are looked for again for so long: Slurm may tell late of an end."""
NEWS = timedelta(hours=1)
"""What happened longer ago is not told any more, for example after the worker was down."""
KEPT = timedelta(days=1)
"""Afterwards a message that could not be sent is no news any more."""
MOST_AT_ONCE = 3
"""Messages that are sent one by one; more are joined."""
MOST_JOBS = 1000


class Mailer:
    """Tells users by e-mail what they have chosen to be told."""

    def __init__(
        self,
        store: MailStore,
        sessions: SessionStore,
        jobs: JobStore,
        server: MailServer | None,
        settings: MailSettings,
        url: str,
        secret: Callable[[], str],
        clock: Clock,
    ) -> None:
        """`secret` signs the links that end messages without a log-in. No server: no mail."""
        self._store = store
        self._sessions = sessions
        self._jobs = jobs
        self._server = server
        self._settings = settings
        self._url = url.rstrip("/")
        self._secret = secret
        self._clock = clock

    @property
    def is_offered(self) -> bool:
        """Whether the site has a mail server."""
        return self._server is not None

    def address(self, person: str) -> str:
        """Where a user's mail goes."""
        return self._settings.recipient.replace("{user}", person)

    def choice(self, person: str) -> frozenset[Occasion]:
        """What a user wants to be told about."""
        return self._store.choice(person)

    def choose(self, person: str, occasions: Collection[Occasion]) -> None:
        """Store what a user wants to be told about from now on."""
        self._store.choose(person, occasions, self._clock())

    def stop(self, person: str, mark: str) -> None:
        """End all mail to a user, by the link in one; raises NotFound for a wrong one."""
        if not hmac.compare_digest(self._mark(person), mark):
            raise NotFound("This link is not complete. Turn messages off on your own page.")
        self._store.choose(person, (), self._clock())

    def stop_link(self, person: str) -> str:
        """The address that ends all mail to a user."""
        return f"{self._url}/mail/stop/{person}/{self._mark(person)}"

    def _mark(self, person: str) -> str:
        return hmac.new(self._secret().encode(), f"mail {person}".encode(), "sha256").hexdigest()[
            :32
        ]

    # The worker's tasks

    def look(self) -> None:
        """Store new messages for all who want some."""
        if not self.is_offered:
            return
        for person, occasions, looked in self._store.choices():
            now = self._clock()
            since = max(looked, now - NEWS) - OVERLAP
            messages = [
                message
                for message in self._messages(person, since, now)
                if message.occasion in occasions
            ]
            self._store.add(person, messages, now)

    def _messages(self, person: str, since: datetime, now: datetime) -> Iterator[Message]:
        for session in self._sessions.changed_since(person, since, now + SOON):
            yield from session_messages(session, now, self._url)
        jobs = self._jobs.ended_since(person, since, MOST_JOBS)
        arrays = {job.array_id for job in jobs if job.array_id}
        live = self._jobs.live_arrays(arrays) if arrays else set()
        texts = {job.id: explain_end(job) for job in jobs}
        yield from job_messages(jobs, live, texts, self._url)

    def send(self) -> None:
        """Send what waits; to each user at most so much an hour, and what is more at once."""
        if self._server is None:
            return
        for person, waiting in self._store.waiting().items():
            try:
                self._send(self._server, person, waiting)
            except MailUnavailable as error:
                log.warning("mail cannot be sent: %s", error)
                return

    def _send(
        self, server: MailServer, person: str, waiting: Sequence[tuple[int, Message]]
    ) -> None:
        now = self._clock()
        left = self._settings.per_hour - self._store.sent_since(person, now - timedelta(hours=1))
        if left <= 0:
            return
        parts = [waiting] if len(waiting) > min(MOST_AT_ONCE, left) else [[one] for one in waiting]
        for number, part in enumerate(parts):
            mail = joined([message for _, message in part])
            server.send(self.address(person), mail, self.stop_link(person))
            # Their times differ, since they are counted.
            self._store.mark_sent([id for id, _ in part], now + timedelta(milliseconds=number))

    def forget(self) -> None:
        """Forget old messages, also those that could not be sent."""
        self._store.forget(self._clock() - KEPT)

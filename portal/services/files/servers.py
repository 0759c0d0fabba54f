"""Users' file servers: starts them on demand, sends requests, and adds browsers' routes."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from math import ceil

from portal.core.apps.access import Grant
from portal.core.auth.person import Person
from portal.core.files.server import (
    LABEL,
    FileReply,
    FileRequest,
    FileServer,
    NoReply,
    StartOrder,
    route_key,
)
from portal.core.interfaces.file_servers import FileServerHost
from portal.core.interfaces.systems import Certificates, Clock, Routes
from portal.errors import NotFound, Starting, Unavailable
from portal.services.files.starts import Starts
from portal.store.file_servers import FileServerStore

log = logging.getLogger(__name__)

START_PATIENCE = timedelta(seconds=30)
"""How long a claim to start a server holds: longer than a start may take."""
SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(seconds=60)
"""Pause after a failed start, in which no start is tried."""
PAUSE_FACTOR = 4
"""Pause relative to the duration of the start: slow starts then take a fifth of the time."""
MOST_GRANTS = 200
"""Cookies and tokens of one user with access; one that is dropped is admitted again on demand."""
MOST_CLEANED = 100
"""Users per call of clean_up."""
CLEANING = timedelta(minutes=2)
"""Maximum duration of clean_up: a user's shell may be slow; the worker must not seem to hang."""
PING = FileRequest("GET", "/v1/ping")

MakeOrder = Callable[[str, str, str, str], StartOrder]
"""From user, id, certificate with key, and the clients' CA."""


@dataclass(frozen=True)
class _Failure:
    """A failed start."""

    instead_of: str
    """The id of the server that had ended; "" without one."""
    until: datetime
    text: str


class FileServers:
    """Users' file servers, started on demand.

    A start goes on while the request that began it is answered. After a crash between start and
    store, the server is started again.
    """

    def __init__(
        self,
        *,
        store: FileServerStore,
        host: FileServerHost,
        certificates: Certificates,
        routes: Routes,
        make_order: MakeOrder,
        upload_life: timedelta,
        clock: Clock,
        starts: Starts,
    ) -> None:
        self._store = store
        self._host = host
        self._certificates = certificates
        self._routes = routes
        self._make_order = make_order
        self._upload_life = upload_life
        self._clock = clock
        self._starts = starts
        self._failures: dict[str, _Failure] = {}

    def ask(self, person: Person, request: FileRequest) -> FileReply:
        """Send a request to the user's server, which is started if there is none.

        Raises Unavailable; Starting while it is being started.
        """
        for _attempt in range(2):
            server = self._store.server(person.name)
            self._refuse_after_failure(person.name, server)
            reply = self._host.ask(server, request) if server else NoReply.ENDED
            if isinstance(reply, FileReply):
                return reply
            ended_id = server.id if server else ""
            self._starts.run(person.name, partial(self._start, person.name, ended_id, reply))
        raise Unavailable("Your file server has ended. Try again.")

    def ensure(self, person: Person) -> None:
        """Start the user's server if there is none; raises Unavailable."""
        self.ask(person, PING)

    def admit(self, person: Person, secret_hash: str, kind: str) -> None:
        """Give a cookie or token of the user access to the server through HAProxy.

        Stored before HAProxy is told, so that the worker restores the route. Raises Unavailable.
        """
        self.ensure(person)
        scope = (LABEL, "", kind, person.name, person.login)
        dropped = self._store.admit(Grant(secret_hash, *scope, self._clock()), MOST_GRANTS)
        key = route_key(secret_hash)
        with self._routes.exclusively():  # the login may have been revoked meanwhile
            self._routes.remove(*map(route_key, dropped))
            target = self._store.routes(self._clock(), person.name).get(key)
            if target is None:
                raise NotFound("This login has ended.")
            self._routes.add(key, target)

    def is_admitted(self, person: Person, secret_hash: str) -> bool:
        """Whether a cookie or token has access that belongs to this login of the user's."""
        grant = self._store.grant(secret_hash)
        return grant is not None and (grant.user, grant.login) == (person.name, person.login)

    def restart(self, secret_hash: str) -> None:
        """Start the server of the user with this cookie or token, if it does not answer.

        Raises NotFound or Unavailable.
        """
        grant = self._store.grant(secret_hash)
        key = route_key(secret_hash)
        if grant is None or key not in self._store.routes(self._clock(), grant.user):
            raise NotFound("This login has ended.")
        self.ensure(Person(grant.user, False, grant.login))

    def expected_routes(self, keys: Collection[str] | None = None) -> dict[str, str]:
        """The routes to all file servers, or those of these keys, to compare HAProxy's map with."""
        return self._store.routes(self._clock(), keys=keys)

    def expire(self) -> None:
        """Delete access of expired logins; the comparison of routes closes it."""
        self._store.expire(self._clock())

    def clean_up(self) -> None:
        """Remove expired uploads of users whose server has not run since; once for each user.

        A running server does it by itself.
        """
        now = self._clock()
        for owner in self._store.uncleaned(now - self._upload_life, MOST_CLEANED):
            if self._clock() - now > CLEANING:
                return
            try:
                order = self._make_order(owner, "", "", self._certificates.client_ca())
                if not self._host.clean(owner, order):
                    self._store.set_cleaned(owner, now)
            except Unavailable as error:
                log.warning("uploads of %s are not cleaned up yet: %s", owner, error)

    def _refuse_after_failure(self, owner: str, server: FileServer | None) -> None:
        failure, now = self._failures.get(owner), self._clock()
        if failure is None:
            return
        if now >= failure.until or failure.instead_of != (server.id if server else ""):
            self._failures.pop(owner, None)
            return
        error = Unavailable(failure.text)
        error.retry_seconds = ceil((failure.until - now).total_seconds())
        raise error

    def _start(self, owner: str, ended_id: str, failure: NoReply) -> None:
        started = self._clock()
        if not self._store.claim_start(owner, ended_id, started, started + START_PATIENCE):
            server = self._store.server(owner)
            if server is not None and server.id != ended_id:
                return  # another process has started it
            raise Starting("Your file server is being started. Try again in a moment.")
        try:
            id, ca = secrets.token_hex(8), self._certificates.client_ca()
            order = self._make_order(owner, id, self._certificates.issue_gateway(id), ca)
            # A server that does not answer may be busy, with work in progress.
            order = replace(order, unless=ended_id if failure is NoReply.SILENT else "")
            address, port = self._host.start(owner, order)
        except BaseException as error:
            self._store.give_up_start(owner)
            if isinstance(error, Unavailable) and not isinstance(error, Starting):
                self._note_failure(owner, ended_id, started, error.text)
            raise
        self._store.save(FileServer(owner, id, address, port, self._clock()))
        with self._routes.exclusively():
            self._routes.add_all(self._store.routes(self._clock(), owner))

    def _note_failure(self, owner: str, ended_id: str, started: datetime, text: str) -> None:
        now = self._clock()
        pause = min(max((now - started) * PAUSE_FACTOR, SHORTEST_PAUSE), LONGEST_PAUSE)
        failures = {
            name: failure for name, failure in self._failures.items() if failure.until > now
        }
        self._failures = failures | {owner: _Failure(ended_id, now + pause, text)}

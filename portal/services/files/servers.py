"""A user's file server: started when it is needed, asked, and reached by browsers."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from datetime import timedelta

from portal.core.auth.person import Person
from portal.core.files.server import FileReply, FileRequest, FileServer, StartOrder, route_key
from portal.core.interfaces.files.servers import FileServerHost, FileServerStore
from portal.core.interfaces.systems import Certificates, Clock, Routes
from portal.errors import NotFound, Unavailable

log = logging.getLogger(__name__)

START_PATIENCE = timedelta(seconds=30)
"""How long a claim to start a server holds: longer than a start may take."""
WAIT_SECONDS = 12.0
"""How long a request waits for a server that another process is starting."""
_PAUSE = 0.1
MOST_CLEANED = 100
"""Users in one turn."""
CLEANING = timedelta(minutes=2)
"""How long a turn may take: a user's shell may let it wait; the worker must not seem to hang."""
PING = FileRequest("GET", "/v1/ping")

MakeOrder = Callable[[str, str, str, str], StartOrder]
"""User, id, certificate with key, and the clients' authority."""


class FileServers:
    """Users' file servers. A crash between start and store costs only another start."""

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
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._host = host
        self._certificates = certificates
        self._routes = routes
        self._make_order = make_order
        self._upload_life = upload_life
        self._clock = clock
        self._wait = wait

    def ask(self, person: Person, request: FileRequest) -> FileReply:
        """Send a request to the user's server, which is started if there is none.

        Raises Unavailable.
        """
        for _attempt in range(2):
            server = self._store.server(person.name)
            if server is not None:
                reply = self._host.ask(server, request)
                if reply is not None:
                    return reply
            self._start(person.name, server.id if server else "")
        raise Unavailable("Your file server has ended. Try again.")

    def ensure(self, person: Person) -> None:
        """Start the user's server if there is none; raises Unavailable."""
        self.ask(person, PING)

    def admit(self, person: Person, secret_hash: str, kind: str) -> None:
        """Let a cookie or token of the user's reach the server through HAProxy.

        Stored before HAProxy is told, so that the worker restores the route. Raises Unavailable.
        """
        self.ensure(person)
        now = self._clock()
        self._store.admit(person.name, secret_hash, person.login, kind, now)
        key = route_key(secret_hash)
        with self._routes.exclusively():  # the login may have been revoked meanwhile
            target = self._store.routes(self._clock(), person.name).get(key)
            if target is None:
                raise NotFound("This login has ended.")
            self._routes.add(key, target)

    def is_admitted(self, person: Person, secret_hash: str) -> bool:
        """Whether a cookie or token has access that belongs to this login of the user's."""
        grant = self._store.grant(secret_hash)
        return grant is not None and (grant.user, grant.login) == (person.name, person.login)

    def restart(self, secret_hash: str) -> None:
        """Start the server of whoever has this cookie or token, if it does not answer.

        Raises NotFound or Unavailable.
        """
        grant = self._store.grant(secret_hash)
        key = route_key(secret_hash)
        if grant is None or key not in self._store.routes(self._clock(), grant.user):
            raise NotFound("This login has ended.")
        self.ensure(Person(grant.user, False, grant.login))

    def expected_routes(self) -> dict[str, str]:
        """The routes to all file servers, for comparison with HAProxy's map."""
        return self._store.routes(self._clock())

    def expire(self) -> None:
        """Delete access of expired logins; the comparison of routes closes it."""
        self._store.expire(self._clock())

    def clean_up(self) -> None:
        """Remove uploads that expired, of users who have not come back since; once for each user.

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

    def _start(self, owner: str, dead: str) -> None:
        now = self._clock()
        if not self._store.claim_start(owner, dead, now, now + START_PATIENCE):
            self._await_start(owner, dead)
            return
        try:
            id, ca = secrets.token_hex(8), self._certificates.client_ca()
            order = self._make_order(owner, id, self._certificates.issue_gateway(id), ca)
            address, port = self._host.start(owner, order)
        except BaseException:
            self._store.give_up_start(owner)
            raise
        self._store.save(FileServer(owner, id, address, port, self._clock()))
        with self._routes.exclusively():
            for key, target in self._store.routes(self._clock(), owner).items():
                self._routes.add(key, target)

    def _await_start(self, owner: str, dead: str) -> None:
        waited = 0.0
        while waited < WAIT_SECONDS:
            self._wait(_PAUSE)
            waited += _PAUSE
            server = self._store.server(owner)
            if server is not None and server.id != dead:
                return
        raise Unavailable("Your file server is being started. Try again in a moment.")

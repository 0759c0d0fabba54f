"""Runs commands on the login node as a user, over SSH with short-lived certificates."""

from __future__ import annotations

import io
import socket
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

import paramiko

from portal.adapters.certificates import CertificateAuthority
from portal.adapters.ssh.command import (
    CommandTimeout,
    Completed,
    RemoteCommand,
    Unresponsive,
    hang_up,
)
from portal.adapters.ssh.connect import CONNECT_SECONDS, open_transport
from portal.adapters.ssh.hosts import HostOrder
from portal.adapters.ssh.per_user import PATIENT, ThreadBudget, ThrottleLimits, UserThrottle
from portal.adapters.ssh.pool import MOST_ON_HOST, Connection, ConnectionPool
from portal.config import LoginSettings
from portal.core.account_names import is_safe
from portal.core.auth.accounts import Account, read_account
from portal.errors import OutcomeUnknown, Unavailable

__all__ = ["Completed", "SshTransport", "Transport"]

USER_LIMITS = ThrottleLimits(at_once=3, waiting=3, seconds=PATIENT)
"""Concurrent commands per user and process: fewer than its threads (`web.threads`)."""
PORTAL_LIMITS = ThrottleLimits(at_once=8, waiting=64, seconds=5.0)
"""The same for the portal's own accounts. sshd refuses the eleventh concurrent command of a
connection (MaxSessions), and a refusal would close the connection for the other commands."""
MOST_OUTPUT = 256 * 1024
"""Maximum bytes of output, except for commands that read a file or list folders."""
MOST_PORTAL_OUTPUT = 64 * 1024 * 1024
"""The same for the portal's own accounts: a large site's queue has megabytes."""
BUSY = (
    "Your commands on the login node do not end in time, or there are too many of them at once. "
    "Try again in {seconds} seconds; if this persists, check your shell's start-up files "
    "and whether your home directory is accessible."
)
WINDOW = 512 * 1024
"""SSH window of a user's command, in bytes: how much the login node may send unread."""


class Transport(Protocol):
    """Runs commands as a user, on the login node or elsewhere."""

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = MOST_OUTPUT,
    ) -> Completed:
        """Run a command to its end, within `seconds` and with at most `most` bytes of output.

        Raises Unavailable if it was not started, OutcomeUnknown after that.
        """
        ...


class SshTransport(Transport):
    """Commands over pooled SSH connections, one per user."""

    def __init__(
        self,
        settings: LoginSettings,
        authority: CertificateAuthority,
        operator: str = "",
        hosts: HostOrder | None = None,
        budget: ThreadBudget | None = None,
        most: int = MOST_ON_HOST,
    ) -> None:
        """`most`: connections above which unused ones are closed."""
        self._settings = settings
        self._hosts = hosts or HostOrder(settings.all_hosts, settings.port)
        self._authority = authority
        self._portal_accounts = {settings.reader, operator}
        self._pool = ConnectionPool(self._portal_accounts, most)
        self._lock = threading.Lock()
        self._user_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._user_throttle = UserThrottle(USER_LIMITS, BUSY, budget=budget)
        self._portal_throttle = UserThrottle(PORTAL_LIMITS, BUSY)

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = MOST_OUTPUT,
    ) -> Completed:
        """Run a command on the login node as the user; waits for a slot if necessary."""
        if self._is_portal_account(user):
            with self._portal_throttle.slot(user):
                return self._run(user, argv, stdin, seconds, MOST_PORTAL_OUTPUT)
        with self._user_throttle.slot(user):
            try:
                return self._run(user, argv, stdin, seconds, most)
            except (Unresponsive, CommandTimeout):
                self._user_throttle.penalize(user)
                raise

    def _is_portal_account(self, user: str) -> bool:
        return user in self._portal_accounts

    def _is_account(self, user: str) -> bool:
        is_safe_portal_account = self._is_portal_account(user) and is_safe(user)
        return is_safe_portal_account or self._settings.names.permits(user)

    def _run(
        self, user: str, argv: Sequence[str], stdin: bytes, seconds: float, most: int
    ) -> Completed:
        connection, channel = self._open(user)
        ended = False
        try:
            result = RemoteCommand(channel, most).run(argv, stdin, seconds)
            ended = True
            return result
        except Unavailable:
            raise
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise OutcomeUnknown(f"The login node did not finish {argv[0]} in time.") from error
        finally:
            if not ended:
                # A process that does not end keeps its slot (MaxSessions) in this connection.
                hang_up(channel)
            with suppress(paramiko.SSHException, OSError, EOFError):
                channel.close()
            self._pool.release(connection, retire=not ended)

    def _open(self, user: str) -> tuple[Connection, paramiko.Channel]:
        window = None if self._is_portal_account(user) else WINDOW
        for attempt in (1, 2):
            connection = self._connection(user)
            try:
                channel = connection.transport.open_session(
                    window_size=window, timeout=CONNECT_SECONDS
                )
                return connection, channel
            except (paramiko.SSHException, OSError, EOFError) as error:
                # A pooled connection may be dead; nothing was sent, so it is safe to try again.
                self._pool.release(connection, retire=True)
                if attempt == 2:
                    raise Unavailable("The login node does not answer.") from error
        raise AssertionError("unreachable")

    def _connection(self, user: str) -> Connection:
        """The user's connection, for one more command."""
        with self._lock:
            lock = self._user_locks[user]
        # One login at a time per user; other threads wait for it.
        if not lock.acquire(timeout=2 * CONNECT_SECONDS):
            raise Unavailable("The login node does not answer.")
        try:
            connection = self._pool.take(user)
            if connection is None:
                return self._new_connection(user)
            if self._hosts.is_first(connection.host):
                return connection
            return self._better_connection(user, connection)
        finally:
            lock.release()

    def _new_connection(self, user: str) -> Connection:
        transport, host = self._connect(user)
        return self._pool.add(user, transport, host)

    def _better_connection(self, user: str, current: Connection) -> Connection:
        """A connection to an earlier login node that answers again; else the current connection."""
        try:
            better = self._new_connection(user)
        except Unavailable:
            return current
        self._pool.release(current)
        return better

    def _connect(self, user: str) -> tuple[paramiko.Transport, str]:
        """Log in to the first login node that accepts the user; returns transport and host."""
        if not self._is_account(user):
            raise Unavailable(f"The portal does not act as {user!r}.")
        # The UID decides whether it is a person's account, not the name.
        if user != self._settings.reader and self.uid(user) < self._settings.minimum_uid:
            raise Unavailable(f"The portal cannot log in to the login node as {user}.")
        problem: Exception | None = None
        text = "The login node does not answer."
        for host in self._hosts.candidates():
            try:
                transport = open_transport(self._settings.at(host))
            except (paramiko.SSHException, OSError, EOFError) as error:
                self._hosts.failed(host)
                problem = error
                continue
            try:
                transport.auth_publickey(user, self._key(user, transport))
            except (paramiko.SSHException, OSError, EOFError) as error:
                transport.close()
                if user == self._settings.reader:
                    self._hosts.failed(host)  # such as one in maintenance (/etc/nologin)
                problem, text = error, f"The portal cannot log in to the login node as {user}."
            else:
                return transport, host
        raise Unavailable(text) from problem

    def uid(self, user: str) -> int:
        """The UID of an account on the login node; -1 if there is none.

        Queried as the reader, since the output of the user's shell cannot be trusted.
        """
        account = self.account(user)
        return account.uid if account is not None and account.name == user else -1

    def account(self, user: str) -> Account | None:
        """The account that the login node finds by this name, which may be spelled differently."""
        if not self._is_account(user):
            return None
        argv = ["getent", "passwd", "--", user]
        result = self.run(self._settings.reader, argv, seconds=CONNECT_SECONDS)
        return read_account(result.stdout.decode(errors="replace")) if result.code == 0 else None

    def _key(self, user: str, transport: paramiko.Transport) -> paramiko.PKey:
        source = self._settings.source_address or _own_address(transport)
        life = timedelta(minutes=self._settings.certificate_minutes)
        private, certificate = self._authority.sign_user(user, life, source)
        key = paramiko.Ed25519Key.from_private_key(io.StringIO(private))
        key.load_certificate(certificate)
        return key


def _own_address(transport: paramiko.Transport) -> str:
    """The local address, which the login node sees unless there is NAT."""
    assert isinstance(transport.sock, socket.socket)  # noqa: S101  # open_transport created it
    return str(transport.sock.getsockname()[0])

"""Running commands on the login node as a user, over SSH with a certificate of a few minutes."""

from __future__ import annotations

import io
import logging
import re
import shlex
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import paramiko

from portal.adapters.certificates import CertificateAuthority
from portal.config import LoginSettings
from portal.errors import OutcomeUnknown, Unavailable

log = logging.getLogger(__name__)

USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
CONNECT_SECONDS = 10.0
MOST_AT_ONCE = 8
"""Commands at the same time over one connection: sshd refuses the eleventh (MaxSessions), and a
refusal would cost the others their connection."""
WAIT_SECONDS = 5.0
"""How long a command waits for its turn: a launch must be handed over before it counts as lost."""
IDLE_SECONDS = 600.0
"""How long an unused connection is kept; sshd lets it outlive its certificate."""


@dataclass(frozen=True)
class Completed:
    """A command that ran to its end."""

    code: int
    stdout: bytes
    stderr: str


class Transport(Protocol):
    """Runs commands as somebody, somewhere."""

    def run(
        self, user: str, argv: Sequence[str], stdin: bytes = b"", seconds: float = 20.0
    ) -> Completed:
        """Run to the end. Raises Unavailable when nothing was run, OutcomeUnknown after that."""
        ...


@dataclass
class _Connection:
    transport: paramiko.Transport
    used: float


class SshTransport:
    """Commands over pooled SSH connections, one for each user."""

    def __init__(self, settings: LoginSettings, authority: CertificateAuthority) -> None:
        self._settings = settings
        self._authority = authority
        self._pool: dict[str, _Connection] = {}
        self._lock = threading.Lock()
        self._user_locks: dict[str, threading.Lock] = {}
        self._slots: dict[str, threading.BoundedSemaphore] = {}

    def run(
        self, user: str, argv: Sequence[str], stdin: bytes = b"", seconds: float = 20.0
    ) -> Completed:
        """Run to the end on the login node as the user; waits while too many others do."""
        with self._lock:
            slot = self._slots.setdefault(user, threading.BoundedSemaphore(MOST_AT_ONCE))
        if not slot.acquire(timeout=WAIT_SECONDS):
            raise Unavailable(f"Too much is being done as {user} right now. Try again in a minute.")
        try:
            return self._run(user, argv, stdin, seconds)
        finally:
            slot.release()

    def _run(self, user: str, argv: Sequence[str], stdin: bytes, seconds: float) -> Completed:
        with self._channel(user) as channel:
            try:
                # exec: the user's own shell may be any; it only ever sees quoted words.
                channel.exec_command("exec " + shlex.join(argv))
                return _converse(channel, stdin, seconds)
            except (paramiko.SSHException, OSError, EOFError) as error:
                self._drop(user)
                raise OutcomeUnknown(f"The login node did not finish {argv[0]} in time.") from error

    def _channel(self, user: str) -> paramiko.Channel:
        for attempt in (1, 2):
            transport = self._connection(user)
            try:
                return transport.open_session(timeout=CONNECT_SECONDS)
            except (paramiko.SSHException, OSError, EOFError) as error:
                # A pooled connection may have died unnoticed; nothing was sent, so try afresh.
                self._drop(user)
                if attempt == 2:
                    raise Unavailable("The login node does not answer.") from error
        raise AssertionError("unreachable")

    def _connection(self, user: str) -> paramiko.Transport:
        with self._lock:
            self._close_idle()
            lock = self._user_locks.setdefault(user, threading.Lock())
        with lock:  # one log-in at a time for a user, the others wait for it
            with self._lock:
                known = self._pool.get(user)
            if known is None or not known.transport.is_active():
                known = _Connection(self._connect(user), time.monotonic())
                with self._lock:
                    self._pool[user] = known
            known.used = time.monotonic()
            return known.transport

    def _close_idle(self) -> None:
        limit = time.monotonic() - IDLE_SECONDS
        for user in [user for user, known in self._pool.items() if known.used < limit]:
            self._pool.pop(user).transport.close()

    def _drop(self, user: str) -> None:
        with self._lock:
            known = self._pool.pop(user, None)
        if known is not None:
            known.transport.close()

    def _connect(self, user: str) -> paramiko.Transport:
        if not USER.fullmatch(user) or user == "root":
            raise Unavailable(f"The portal does not act as {user!r}.")
        try:
            transport = open_transport(self._settings)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unavailable("The login node does not answer.") from error
        try:
            transport.auth_publickey(user, self._key(user, transport))
            # A name says little: the account's number says whether it is a person's.
            if user != self._settings.reader and _uid(transport) < self._settings.minimum_uid:
                raise paramiko.SSHException("a system account")
        except (paramiko.SSHException, OSError, EOFError) as error:
            transport.close()
            raise Unavailable(f"The login node does not let the portal in as {user}.") from error
        return transport

    def _key(self, user: str, transport: paramiko.Transport) -> paramiko.PKey:
        source = self._settings.source_address or _own_address(transport)
        life = timedelta(minutes=self._settings.certificate_minutes)
        private, certificate = self._authority.sign_user(user, life, source)
        key = paramiko.Ed25519Key.from_private_key(io.StringIO(private))
        key.load_certificate(certificate)
        return key


def _own_address(transport: paramiko.Transport) -> str:
    """The address that the login node sees us come from, unless something translates it."""
    assert isinstance(transport.sock, socket.socket)  # noqa: S101  # open_transport made it
    return str(transport.sock.getsockname()[0])


def _uid(transport: paramiko.Transport) -> int:
    """The number of the account that we are logged in as; -1 when it runs no commands."""
    channel = transport.open_session(timeout=CONNECT_SECONDS)
    channel.exec_command("exec id -u")
    words = _converse(channel, b"", CONNECT_SECONDS).stdout.split()
    return int(words[-1]) if words and words[-1].isdigit() else -1


def _converse(channel: paramiko.Channel, stdin: bytes, seconds: float) -> Completed:
    """Send everything, read everything, wait for the exit status."""
    channel.settimeout(seconds)
    sender = threading.Thread(target=_send, args=(channel, stdin), daemon=True)
    sender.start()
    stdout = channel.makefile("rb").read()
    stderr = channel.makefile_stderr("rb").read()
    if not channel.status_event.wait(seconds):
        raise TimeoutError
    code = channel.recv_exit_status()
    if code < 0:  # ended by a signal or cut off: nobody knows how far it came
        raise OSError("no exit status")
    return Completed(code, stdout, stderr.decode(errors="replace"))


def _send(channel: paramiko.Channel, stdin: bytes) -> None:
    try:
        channel.sendall(stdin)
        channel.shutdown_write()
    except OSError:
        log.debug("the command ended before it read all its input")


def open_transport(settings: LoginSettings) -> paramiko.Transport:
    """An encrypted connection to the login node whose host key is the known one."""
    sock = socket.create_connection((settings.host, settings.port), CONNECT_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = paramiko.Transport(sock)
    try:
        keys = paramiko.HostKeys(settings.known_hosts)
        port = "" if settings.port == 22 else f":{settings.port}"
        name = f"[{settings.host}]{port}" if port else settings.host
        known = keys.lookup(name)
        if known is None:
            raise paramiko.SSHException(f"no host key for {name} in {settings.known_hosts}")
        options = transport.get_security_options()
        options.key_types = [kind for kind in options.key_types if kind in known.keys()]  # noqa: SIM118
        transport.start_client(timeout=CONNECT_SECONDS)
        remote = transport.get_remote_server_key()
        if known.get(remote.get_name()) != remote:
            raise paramiko.SSHException("the login node has another host key than the known one")
        transport.set_keepalive(30)
    except BaseException:
        transport.close()
        raise
    return transport


class PasswordCheck:
    """Authenticator: the login node's sshd decides, so PAM and LDAP there count."""

    def __init__(self, settings: LoginSettings) -> None:
        self._settings = settings

    def __call__(self, user: str, password: str) -> bool:
        """Whether the login node takes this password for an ordinary account."""
        if not USER.fullmatch(user) or user == "root":
            return False
        try:
            transport = open_transport(self._settings)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unavailable("The login node does not answer, so nobody can log in.") from error
        try:
            transport.auth_password(user, password)
            return _uid(transport) >= self._settings.minimum_uid
        except paramiko.AuthenticationException:
            return False
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unavailable("The login node does not answer, so nobody can log in.") from error
        finally:
            transport.close()

"""Accounts on the login node: looked up by name in batches, or checked by logging in."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Collection
from datetime import timedelta

import paramiko

from portal.adapters.certificates import CertificateAuthority
from portal.adapters.ssh.command import execute
from portal.adapters.ssh.connect import open_any
from portal.adapters.ssh.hosts import HostOrder
from portal.adapters.ssh.transport import Transport
from portal.config import LoginSettings
from portal.core.auth.accounts import (
    AccountStatus,
    Identity,
    read_missing,
    read_password_status,
    read_uid,
)
from portal.core.interfaces.auth import Accounts
from portal.errors import Unavailable

AT_ONCE = 200
"""Names per command."""
SECONDS = 10.0
_LIFE = timedelta(minutes=1)
_MAX_ANSWER = 4096
_ANSWER_SECONDS = 4.0


class LoginNodeAccounts(Accounts):
    """Accounts over SSH."""

    def __init__(
        self,
        settings: LoginSettings,
        authority: CertificateAuthority,
        transport: Transport,
        hosts: HostOrder | None = None,
    ) -> None:
        self._settings = settings
        self._hosts = hosts or HostOrder(settings.all_hosts, settings.port)
        self._authority = authority
        self._transport = transport

    def missing(self, names: Collection[str]) -> set[str]:
        permitted = sorted(filter(self._settings.names.permits, names))
        missing: set[str] = set()
        for begin in range(0, len(permitted), AT_ONCE):
            part = permitted[begin : begin + AT_ONCE]
            answer = self._answer(["getent", "passwd", "--", *part], "look up accounts")
            missing |= read_missing(part, answer)
        return missing

    def identity(self, user: str) -> Identity | None:
        if not self._settings.names.permits(user):
            return None
        uid = read_uid(user, self._answer(["getent", "passwd", "--", user], "look up accounts"))
        if uid is None:
            return None
        groups = self._answer(["id", "-G", "-n", "-z", "--", user], "list groups").split("\0")
        return Identity(uid, frozenset(filter(None, groups)))

    def _answer(self, argv: list[str], task: str) -> str:
        answer = self._transport.run(self._settings.reader, argv, seconds=SECONDS)
        if answer.code not in (0, 2):  # 2: getent has not found all of them
            raise Unavailable(f"The login node cannot {task}.")
        return answer.stdout.decode(errors="replace")

    def standing(self, user: str) -> AccountStatus:
        """Whether an account may log in now, and its password's status.

        A refusal counts only if it is repeated and the portal's own account can log in meanwhile:
        for accounts that PAM refuses, sshd just closes the connection, as in a network failure.
        """
        if not self._settings.names.permits(user):
            return AccountStatus(may_log_in=False)
        output, host = self._log_in(user, self._hosts)
        if output is None:
            # One login node may refuse all accounts for a while, so the check is on the same one.
            alone = HostOrder([host], self._settings.port)
            if self._log_in(self._settings.reader, alone)[0] is None:
                self._hosts.failed(host)
                raise Unavailable("The login node refuses the portal's certificates.")
            output, _ = self._log_in(user, alone)
        if output is None:
            return AccountStatus(may_log_in=False)
        return AccountStatus(may_log_in=True, password=read_password_status(user, output))

    def _log_in(self, user: str, hosts: HostOrder) -> tuple[str | None, str]:
        """Log in with a certificate, over a new connection.

        Returns the output of `passwd --status`, or None if the account is refused; and the host.
        """
        try:
            transport, host = open_any(self._settings, hosts)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unavailable("The login node does not answer.") from error
        try:
            transport.auth_timeout = SECONDS
            transport.auth_publickey(user, self._key(user, transport))
            return _ask(transport), host
        except paramiko.AuthenticationException:
            return None, host
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise Unavailable("The login node does not answer.") from error
        finally:
            transport.close()

    def _key(self, user: str, transport: paramiko.Transport) -> paramiko.PKey:
        assert isinstance(transport.sock, socket.socket)  # noqa: S101  # open_transport created it
        source = self._settings.source_address or str(transport.sock.getsockname()[0])
        private, certificate = self._authority.sign_user(user, _LIFE, source)
        key = paramiko.Ed25519Key.from_private_key(io.StringIO(private))
        key.load_certificate(certificate)
        return key


def _ask(transport: paramiko.Transport) -> str:
    """The output of `passwd --status` run as the account; "" if its shell does not run it."""
    data, deadline = b"", time.monotonic() + _ANSWER_SECONDS
    try:
        channel = transport.open_session(timeout=SECONDS)
        execute(channel, "exec passwd --status", deadline)
        while len(data) < _MAX_ANSWER and (remaining := deadline - time.monotonic()) > 0:
            channel.settimeout(remaining)
            piece = channel.recv(_MAX_ANSWER - len(data))
            if not piece:
                break
            data += piece
    except (paramiko.SSHException, OSError, EOFError):
        pass  # the login itself has succeeded
    return data.decode(errors="replace")

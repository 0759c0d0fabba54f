"""Unauthenticated connections to login nodes with known host keys."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import paramiko
from paramiko.auth_strategy import AuthSource, AuthStrategy, SourceResult
from paramiko.hostkeys import InvalidHostKey

from portal.adapters.ssh.hosts import HostOrder
from portal.config import LoginSettings

CONNECT_SECONDS = 10.0


class _AuthenticatedLater(AuthStrategy):
    """Leaves authentication to the caller, which chooses the only method.

    SSHClient by itself would try an agent, key files and prompts on stdin.
    """

    def __init__(self) -> None:
        super().__init__(ssh_config=paramiko.SSHConfig())

    def get_sources(self) -> Iterator[AuthSource]:
        """Return no sources."""
        return iter(())

    def authenticate(self, transport: paramiko.Transport) -> list[SourceResult]:
        """Do nothing."""
        return []


def open_transport(settings: LoginSettings) -> paramiko.Transport:
    """Open an encrypted connection to the login node, not yet authenticated.

    Raises SSHException unless the host key is in `settings.known_hosts`, OSError or EOFError if
    the connection fails.
    """
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    sock = socket.create_connection((settings.host, settings.port), CONNECT_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        client.load_host_keys(settings.known_hosts)
        client.connect(
            settings.host,
            settings.port,
            username="",  # not needed before authentication; None would look it up
            sock=sock,
            timeout=CONNECT_SECONDS,
            banner_timeout=CONNECT_SECONDS,
            auth_timeout=CONNECT_SECONDS,
            auth_strategy=_AuthenticatedLater(),
        )
        transport = client.get_transport()
        assert transport is not None  # noqa: S101  # connect() has created it
        transport.set_keepalive(30)
    except InvalidHostKey as error:
        sock.close()
        raise paramiko.SSHException(f"{settings.known_hosts} cannot be read") from error
    except BaseException:
        client.close()
        sock.close()
        raise
    return transport


def open_any(settings: LoginSettings, hosts: HostOrder) -> tuple[paramiko.Transport, str]:
    """Open a connection to the first login node that answers; returns it with the node's name.

    The connection is not yet authenticated. If none answers, raises open_transport's last error.
    """
    problem: Exception = OSError("there is no login node")
    for host in hosts.candidates():
        try:
            return open_transport(settings.at(host)), host
        except (paramiko.SSHException, OSError, EOFError) as error:
            hosts.failed(host)
            problem = error
    raise problem
